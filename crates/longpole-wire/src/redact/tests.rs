use longpole_model::process::ARGUMENTS_BYTES_MAX;
use longpole_model::{Attribute, AttributeValue, Attributes, Resource};
use proptest::prelude::*;

use super::names::{self, Meaning};
use super::programs::{POSITIONS, TOOLS, Tool};
use super::step_budget::{STEPS_A_BYTE, STEPS_MIN, WORD_BYTES};
use super::*;

fn cleaned(text: &str) -> String {
    let mut text = text.to_owned();
    Redactor::default().string(&mut text);
    text
}

#[test]
fn names_of_credentials_are_known_in_every_spelling() {
    for name in [
        "password",
        "db.password",
        "DB_PASSWORD",
        "dbPassword",
        "password_hash",
        "AWS_SECRET_ACCESS_KEY",
        "x-api-key",
        "apiKey",
        "http.request.header.authorization",
        "http.request.header.set-cookie",
        "PULUMI_ACCESS_TOKEN",
        "clientSecret",
        "secret_value",
        "X-Amz-Signature",
        "SECRET_KEY_BASE",
        "connectionString",
        "Ocp-Apim-Subscription-Key",
        "sig",
        "SENTRY_DSN",
        "token",
        "deployTokens",
        "x-honeycomb-team",
        "UNSEAL_KEY",
        "db_passwort",
        "密码",
    ] {
        assert_ne!(names::meaning(name), Meaning::Plain, "{name}");
    }
    for name in [
        "",
        "gen_ai.usage.input_tokens",
        "token.count",
        "schema.token",
        "token.type",
        "secret.name",
        "key",
        "k8s.pod.name",
        "http.route",
        "author",
        "compass",
        "session.id",
        "pulumi.resource.type",
        "monkey",
        "signal",
        "sigma",
        "db.statement",
        "keyboard",
    ] {
        assert_eq!(names::meaning(name), Meaning::Plain, "{name}");
    }
}

#[test]
fn credentials_are_taken_out_of_texts_and_the_rest_stays() {
    let r = REDACTED;
    for (text, clean) in [
        ("postgres://shop:hunter2@db:5432/shop", format!("postgres://shop:{r}@db:5432/shop")),
        ("https://ghp_0123456789abcdefghijklmnopqrstuvwxyz@github.com/x", format!("https://{r}@github.com/x")),
        ("https://ghp_0123456789abcdefghijklmnopqrstuvwxyz:@github.com/x", format!("https://{r}@github.com/x")),
        ("git clone https://Zq7h006x9k2mQ4tW8rZ0aa11bb22cc33dd44ee55:@dev.azure.com/o", format!("git clone https://{r}@dev.azure.com/o")),
        ("https://ann:@example.com/x", "https://ann:@example.com/x".to_owned()),
        ("ssh://git@github.com/x.git", "ssh://git@github.com/x.git".into()),
        ("GET /login?user=ann&password=hunter2&next=%2F", format!("GET /login?user=ann&password={r}&next=%2F")),
        ("https://s3/x?X-Amz-Signature=abcdef0123", format!("https://s3/x?X-Amz-Signature={r}")),
        ("Authorization: Bearer abc.def-123", format!("Authorization: Bearer {r}")),
        ("-H 'authorization: Basic dXNlcjpwYXNz'", format!("-H 'authorization: Basic {r}'")),
        ("curl -H bearer 0123456789abcdef", format!("curl -H bearer {r}")),
        ("bearer authentication failed", "bearer authentication failed".into()),
        (r#"{"password":"hunter 2","user":"ann"}"#, format!(r#"{{"password":"{r}","user":"ann"}}"#)),
        (r#"{\"password\":\"hunter2\"}"#, format!(r#"{{\"password\":\"{r}\"}}"#)),
        ("DB_PASSWORD=hunter2 ./run --level=3", format!("DB_PASSWORD={r} ./run --level=3")),
        ("key AKIAIOSFODNN7EXAMPLE used", format!("key {r} used")),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF_123", r.into()),
        ("pul-0123456789abcdef0123456789abcdef01234567", r.into()),
        ("token: ", "token: ".into()),
        ("Set-Cookie: sid=abc; Path=/", format!("Set-Cookie: {r}; Path=/")),
        ("https://blob/x?sv=2024&sig=aB%2Fc%3D&se=1", format!("https://blob/x?sv=2024&sig={r}&se=1")),
        // What begins with something that no word is made of.
        ("password=#1@x next", format!("password={r} next")),
        (r#"{"password":"(a b)","user":"ann"}"#, format!(r#"{{"password":"{r}","user":"ann"}}"#)),
        ("?password=&user=ann", "?password=&user=ann".into()),
        // Headers, as Go and JSON print them.
        ("map[Accept:[*/*] X-Api-Key:[a1 b2] Host:[x]]", format!("map[Accept:[*/*] X-Api-Key:[{r}] Host:[x]]")),
        (r#"{"x-api-key":["a1","b2"],"host":["x"]}"#, format!(r#"{{"x-api-key":["{r}"],"host":["x"]}}"#)),
        // Where something is set, a word is a value; in a list it may be another name.
        ("define('DB_PASSWORD', 'swordfish');", format!("define('DB_PASSWORD', '{r}');")),
        ("h.Set(\"X-Api-Key\", \"swordfish\")", format!("h.Set(\"X-Api-Key\", \"{r}\")")),
        ("[\"X-Api-Key\", \"Accept\"]", "[\"X-Api-Key\", \"Accept\"]".into()),
        // Around what is taken out all stays.
        ("<a key=\"token\" value=\"x\"/> b", format!("<a key=\"token\" value=\"{r}\"/> b")),
        ("c.header(\"x-api-key\", \"x1\").send(a, \"b\")", format!("c.header(\"x-api-key\", \"{r}\").send(a, \"b\")")),
        ("{\"password\":{\"value\":\"x\"},\"user\":\"ann\"}", format!("{{\"password\":{r},\"user\":\"ann\"}}")),
        ("password: |\n  x\n  y\nuser: ann", format!("password: |\n  {r}\nuser: ann")),
        ("PASSWORD='a'\"'\"'x' ./run", format!("PASSWORD='{r}' ./run")),
        ("('a', 'x'), ('b', 'y')", "('a', 'x'), ('b', 'y')".into()),
        (
            "INSERT INTO t (a, password) VALUES ('a', 'x'), ('b', 'y')",
            format!("INSERT INTO t (a, password) VALUES ('a', '{r}'), ('b', '{r}')"),
        ),
        // Command lines that are one text.
        ("[deploy --password hunter2 --level 3]", format!("[deploy --password {r} --level 3]")),
        ("['deploy', '--password', 'hunter 2', 'up']", format!("['deploy', '--password', '{r}', 'up']")),
        ("deploy --token --verbose", "deploy --token --verbose".into()),
        ("pulumi config set --secret db:pw hunter2 -s dev", format!("pulumi config set --secret {r} {r}")),
        ("[pulumi config set dbPassword hunter2]", format!("[pulumi config set dbPassword {r}]")),
        ("pulumi config set dbPassword hunter2 && pulumi up", format!("pulumi config set dbPassword {r} && pulumi up")),
        ("pulumi config set databaseMillis 100", "pulumi config set databaseMillis 100".into()),
        ("the token expired", "the token expired".into()),
        ("cloud:secret:ApiKey", "cloud:secret:ApiKey".into()),
        (
            "urn:pulumi:dev::p::random:index/randomPassword:RandomPassword::db",
            "urn:pulumi:dev::p::random:index/randomPassword:RandomPassword::db".into(),
        ),
        ("urn:pulumi:dev::shop::aws:s3/bucket:Bucket::assets", "urn:pulumi:dev::shop::aws:s3/bucket:Bucket::assets".into()),
        ("12:30:01.5 listening on http://127.0.0.1:8080/", "12:30:01.5 listening on http://127.0.0.1:8080/".into()),
    ] {
        assert_eq!(cleaned(text), clean);
    }
    let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc=\n-----END RSA PRIVATE KEY-----\n";
    let clean = cleaned(key);
    assert!(!clean.contains("MIIEow") && !clean.contains("abc=") && clean.contains(REDACTED), "{clean}");
}

#[test]
fn a_key_behind_other_letters_than_those_of_english_is_seen() {
    let key = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    for (before, after) in [("“", "”"), ("‘", "’"), ("令牌", ""), ("→", ""), ("\u{a0}", "."), ("\u{1b}[33m", "\u{1b}[0m")] {
        let mut text = format!("clone with {before}{key}{after}");
        assert!(Redactor::default().string(&mut text) > 0 && !text.contains("0123456789"), "{before}: {text}");
    }
}

#[test]
fn options_and_nested_values_are_seen() {
    let mut redactor = Redactor::default();
    let mut words: Vec<String> =
        ["curl", "--password", "hunter2", "-u", "ann", "--api-key=abc", "--token", "--verbose"].map(str::to_owned).to_vec();
    assert_eq!(redactor.arguments(&mut words), 2);
    assert_eq!(words, ["curl", "--password", REDACTED, "-u", "ann", "--api-key=[redacted]", "--token", "--verbose"]);

    for (line, clean) in [
        ("pulumi config set --secret db:pw hunter2", "pulumi config set --secret [redacted] [redacted]"),
        ("pulumi config set dbPassword hunter2 --stack dev", "pulumi config set dbPassword [redacted] --stack [redacted]"),
        ("npm config set //r.example/:_authToken hunter2", "npm config set //r.example/:_authToken [redacted]"),
        ("pulumi config set size 3", "pulumi config set size 3"),
        ("pulumi config set", "pulumi config set"),
    ] {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        redactor.arguments(&mut words);
        assert_eq!(words.join(" "), clean);
    }

    let text = |text: &str| AttributeValue::Str(text.into());
    let inner =
        Attribute { key: "password".into(), value: AttributeValue::Array(vec![text("a"), text("b"), AttributeValue::Int(7)].into()) };
    let mut attributes = Attributes(vec![
        Attribute { key: "login".into(), value: AttributeValue::KeyValues(vec![inner].into()) },
        Attribute { key: "process.command_args".into(), value: AttributeValue::Array(vec![text("--secret"), text("x"), text("y")].into()) },
        Attribute { key: "client.secret".into(), value: AttributeValue::Bytes(vec![1, 2].into()) },
        Attribute { key: "token".into(), value: AttributeValue::Int(3) },
    ]);
    assert!(redactor.concerns_resource(&Resource { attributes: attributes.clone() }));
    assert_eq!(redactor.attributes(&mut attributes), 4);
    assert_eq!(redactor.attributes(&mut attributes), 0, "what is redacted stays as it is");
    let shown = format!("{attributes:?}");
    assert!(shown.contains("Str(\"y\")") && shown.contains("Int(7)") && shown.contains("Int(3)") && !shown.contains("Bytes"), "{shown}");
}

#[test]
fn a_credential_by_name_may_have_brackets() {
    let attribute = |key: &str, value: &str| Attributes(vec![Attribute { key: key.into(), value: AttributeValue::Str(value.into()) }]);
    for (key, value) in [
        ("client_secret", "Ab(9dKq)#fl3LLq"),
        ("AWS_SECRET_ACCESS_KEY", "getToken(x)"),
        ("signing_key", "Ab(9dKq)"),
        ("x-amz-signature", "Ab(9dKq)#fl3LLq"),
        ("dsn", "a(b"),
    ] {
        assert_eq!(Redactor::default().attributes(&mut attribute(key, value)), 1, "{key}: {value}");
    }
    assert_eq!(Redactor::default().attributes(&mut attribute("method.signature", "getToken(java.lang.String)")), 0);
}

#[test]
fn a_command_line_that_was_cut_loses_what_could_not_be_judged() {
    // Wherever it is cut, the mark of these credentials may be gone.
    for secret in [
        "postgres://ann:hunter2swordfish@db/x",
        "<password>hunter2swordfish</password>",
        "{\"value\": \"hunter2swordfish\", \"name\": \"TOKEN\"}",
    ] {
        for at in 1..=secret.len() {
            let cut = format!("{}{}…", "x ".repeat((ARGUMENTS_BYTES_MAX - at) / 2), &secret[..at]);
            let mut words = ["sh".to_owned(), "-c".to_owned(), cut];
            Redactor::default().arguments(&mut words);
            assert!(!words[2].contains("hunter2") && words[2].ends_with('…'), "{}", &words[2][16_000..]);
            assert!((16_350..16_450).contains(&words[2].len()), "{}", words[2].len());
        }
    }
    let whole = ["echo", "Waiting…"].map(str::to_owned);
    let mut words = whole.clone();
    assert_eq!((Redactor::default().arguments(&mut words), &words), (0, &whole));
    let mut words = [whole[0].clone(), "x".repeat(ARGUMENTS_BYTES_MAX), "short…".to_owned()];
    Redactor::default().arguments(&mut words);
    assert_eq!((words[1].len(), &*words[2]), (ARGUMENTS_BYTES_MAX, "…"));
}

proptest! {
    #[test]
    fn any_layout_is_cleaned_once_and_for_all(text in r#"([a-z1:=&"' <>,|#é：-]|\n|\n  |\[|\]|\{|\}|\(|\)|\\|password|token|name|value|values|AUTH |acl setuser |\x1b\[1m|&#61;|"""|'"'"'){0,40}"#) {
        let once = cleaned(&text);
        prop_assert_eq!(cleaned(&once), once);
    }

    #[test]
    fn any_command_is_cleaned_once_and_for_all(text in r#"([a-z1é"'`=\[\]() ,]|\$\(|<\(|\)|\\\n|\n| \^\r\n|&&|\|| -p|-u a:b|mysql|docker login|curl|--password|PosixPath\(|setenv |DB_PASSWORD ){0,40}"#) {
        let once = cleaned(&text);
        prop_assert_eq!(cleaned(&once), once);
    }

    #[test]
    fn any_message_is_cleaned_once_and_for_all(text in r#"([a-z1é"'`=:/@\[\]() ,<>{}\\]|\n|password|"loc":|"path":|"param":|"op":"add"|"instancePath":|"value":|"input":|"data":|auth=\(|input_value=| with value | rejected value |Key \(|\)=\(|duplicate entry '|' for key '|://|@tcp\(|@h:11|cookie: |set-cookie: |"kty"|"d":|eyJwYXNzd29yZCI6IlpxN2h1bnRlcjIifQ|<pwd>|<!\[CDATA\[|\]\]>){0,40}"#) {
        let once = cleaned(&text);
        prop_assert_eq!(cleaned(&once), once);
    }

    #[test]
    fn any_text_is_cleaned_once_and_for_all(text in r#"([a-z:/@=&"' .\\é#,]|\[|\]|password|--token |config set |://|Bearer |eyJ|-----BEGIN PRIVATE KEY-----){0,40}"#) {
        let once = cleaned(&text);
        prop_assert_eq!(cleaned(&once), once);
    }

    #[test]
    fn a_planted_password_never_stays(
        before in "[a-z ,;]{0,10}",
        secret in "[A-Za-z0-9][A-Za-z0-9+/=]{5,29}",
        shape in prop::sample::select(vec!["password=S", "--db-password=S", "{\"api_key\": \"S\"}", "https://u:S@h/", "https://h/?token=S&x=1", "[x --password S]", "['--token', 'S']", "map[X-Api-Key:[S]]", "{\"x-api-key\":[\"S\"]}"]),
    ) {
        // A slash or a blank inside the password part of a URL has to be percent-encoded.
        let secret = secret.replace('/', "_");
        let text = format!("{before} {}", shape.replace('S', &secret));
        let clean = cleaned(&text);
        let kept = shape.replace('S', "");
        if !kept.contains(&secret) && !before.contains(&secret) {
            prop_assert!(!clean.contains(&secret), "{} -> {}", text, clean);
        }
    }
}

/// Texts whose every byte leads to what follows, or back: what an attacker sent, and what else the code has to look for.
const HOSTILE: &[&str] = &[
    "a ",
    "auth=",
    "auth=%61",
    "auth=a1b2c3d4e5f6g7h8=",
    "{auth:",
    "auth=[\"a ",
    "auth=[a ",
    "auth=[",
    "--auth ",
    "token+",
    "digest+realm+",
    "digest a,b=\"c,",
    "pwd=/",
    "\"auth\":\"x\\\" ",
    "auth=\"x auth=\"\\",
    "\"\\",
    "'a",
    "''",
    "`a \" ' ",
    "\\'\\\"",
    "identified by 'a ",
    "password [\"a ",
    "password [a ",
    "set-cookie:path=/;",
    "config set ",
    "sqlplus a/b ",
    "vault kv put a=b ",
    "mysql -x ",
    "docker login -x ",
    "htpasswd -b a ",
    "-----BEGIN PRIVATE -----",
    "-----BEGIN PRIVATE-----\n-----END ",
    "private-lines ",
    "\x01AUTH {{",
    "eyJ-",
    "LS0tLS1CRUdJTi",
    "LS0tLS1CRUdJTi\n",
    "LS0tLS1CRUdJTiAAAAAAAAAAAAAAAAAAA\n",
    "eyJhbGciOiJI.",
    "b_",
    "re_",
    "sk-",
    "SG.",
    "pat.",
    ".atlasv1",
    "Q~",
    "12:A",
    "x://a:b/c?d",
    "a:b@c:11",
    "<password>{{",
    "key=value=",
    "=====",
    "%25",
    "&#61",
    "\\u{",
    "：",
    "token 1: ",
    "passe: ",
    "AUTH\r\n$9\r\n",
    "\"auth\" \"",
    "0 auth ",
    "acl setuser ",
    "acl setuser >a ",
    "sudo ",
    "webhooks/1234567890123456/",
    "sc_aaaaa.aaaa.acc.",
    "password:{",
    "password:{a:1}",
    "password:A{",
    "password:\"",
    "name=a value=b ",
    "value=\"a ",
    "value=\"a\" name=",
    "value=",
    "{value=\"a\",name=token",
    "name=token ",
    "(\"a\",",
    "(\"token\",\"",
    "[\"token\",",
    "\"x-api-key\",\"a b\",",
    "password:\n",
    "password:\n  ",
    "password:\n  a: b\n",
    "password: |\n",
    "password=\"\n",
    "password='''\n",
    "password='a'\"'\"",
    "'a'\"'\"",
    "\\'a",
    "token=[\"a\n]",
    "token=[\n",
    "secret:0123456789012345678901234567890123456789\n",
    "(password) values (",
    "(password) values ('a' ",
    "values ",
    "(password) select ",
    "map[",
    "password:map[",
    "password=\"a\"+\"",
    "set(\"token\",\"a\")",
    "\x1b[36m",
    "\x1b[36mpassword\x1b[0m=\x1b[33m",
    "<name>",
    "<name>token<value>",
    "<a key=\"token\">a b",
    "00D000000000000!",
    "0123456789abcdef0123456789abcdef-us",
    "\\\\",
    "\n",
    "\n,",
    "\r\n",
    "\\n",
    "A=;",
    "A=1 ;",
    ";sudo ",
    "token=[a token=[",
    "token：a<",
    "=x-api-key",
    "auth=[a     ",
    "pwd=/,,,",
    "token=a(",
    "token=a(b,\"",
    "token=a[{",
    "\\\n",
    "=\\\n",
    "-x \\\n",
    "token=\\\n",
    " ^\r\n",
    " `\n",
    "'[",
    "'['a', ",
    "]' ",
    "'(a ",
    "$(",
    "$(a ",
    "a $(b) ",
    "$(a)) ",
    "<(a `b",
    "a`b c",
    "a=\"b -c\" ",
    "a=--b",
    "a&&b ",
    "\"token\" with value \"a ",
    "'token': rejected value [a ",
    "input_value='a ",
    "{\"loc\":[\"a\",\"token\",\"input\":\"a ",
    "\"path\":\"/token\" \"value\":\"a ",
    "\"instancePath\":\"/a/token",
    "\"value\":\"a\" \"path\":\"token\" ",
    "\"value\":\"a \"path\":\"token\" ",
    "\"value\":'a \"path\":\"token\" ",
    "\"value\":[\"a\",\"param\":\"token\" ",
    "{\"value\":\"a\",\"param\":\"b1\"",
    "\"value\":\"a\",\"\\\"\\\"\\\"\\\"\"param\":\"token\" ",
    "\"input\":\"a\",\"loc\":[\"token\"],",
    "\"input\":\"a\",\"loc\":[0,0,0,",
    "\"param\":\"token\",",
    "\"path\":\"/////",
    "\"loc\":[,,,,",
    "\"op\":\"add\",\"path\":\"/a/token\",\"value\":\"a\",",
    "\"value\":\"a\",\"path\":\"/a/b\",\"op\":\"add\",",
    "\"op\":\"add\",",
    "(token)=(a ",
    "Key (token)=(a ",
    "duplicate entry 'a ",
    "\npassword:: a",
    "password $$",
    "AKIAAAAAAAAAAAAAAAAA:",
    "eyJhdXRocyI6eyJhdXRocyI6eyJhdXRo-",
    "eyJhdXRocyI6eyJhdXRocyI6eyJhdXRo ",
    "W3siW3siW3siW3siW3siW3siW3siW3si=\n",
    "eyJ0b2tlbiI6ImEoYiwidG9rZW4iAAAA",
    "\"x://a:b'",
    ">x://a:b",
    "x://a:b'c@d ",
    "u:a=b,c@d:11",
    "(u:'@tcp(",
    "set-cookie:a=\"b",
    "cookie:a=\"b\";",
    "cookie: a='b",
    "\"d\":\"a ",
    "{\"d\":{",
    "\"k\":\"a ]\"kty",
    "<pwd><![CDATA[/",
    "<password><![CDATA[",
    "<pass>1",
    "pass：a",
    "password=a&b",
    "password=a'b",
    "password=a<b",
    "password=a;b ",
    "token=a>b`",
    "\npassword=a'b'",
    "token=a<",
    "ConvertTo-SecureString ",
    "ConvertTo-SecureString -a ",
    "token=ConvertTo-SecureString \"a",
    "auth=('a',",
    "userpassword(\"a\",",
    "drivermanager.getconnection(\"a\",\"b",
    "drivermanager.getconnection(a,b,\"c",
    "auth=(",
    "auth=(a",
    "auth=(a,\"b",
    "auth=(a,\\\"b",
    "auth=(\"",
    "auth=('",
    "auth=(()",
    "auth=([]a[]",
    "auth=(\"auth=(\"auth=(\"auth=(\")",
    "setuserpassword(a ",
    "token=\"a\" -> ",
    "token=\"a\" -> \"",
    "token=\"\" => \"b",
    "token=<<EOF\n",
    "token=<<E\nE\n",
    "{token,\"a",
    "{token,<<\"",
    "oracle:thin:a/b",
    "oracle:thin:a/b@",
    "add-mask::a\n",
    "\n'x-token', 'a b",
    "- value: a\n  name: token\n",
    "value: a\nname: b\n",
    "/a:b /password:",
    "token ?",
    "token=string(1) \"",
    "requirepass a b",
    "\nmasterauth a",
    "\npassword  | a b",
    "\npassword ",
    "set-header token $a ",
    "proxy_set_header token a",
    "set -x ",
    "parameters=[@p",
    "parameters=[@p0='a'], CommandType set token=@p0 ",
    "params: (",
    "args=('a',",
    "params=[",
    "insert into t (token) values (?) params: ('a",
    "(token) values (?) params: ('a') ",
    "parameters: $1 = 'a', ",
    "set token=$1 parameters: $1 = 'a', $1 = 'b', ",
    "'a' failed validating 'b' in schema['properties']['token']: ",
    "\n\nfailed validating 'b' in schema['a']",
    "form-data; name=\"token\"\n\n",
    "form-data; name=\"tokens\"\n\n1",
    "form-data; name=\"auth\"\n\na\n--b",
    "\"token\";s:1:\"",
    "\"token\";s:99999:\"a",
    "\"tokens\";s:9:\"1",
    "\"password\";a:1:{",
    "echo a | chpasswd ",
    "(echo a; ",
    "chpasswd <<EOF\n",
    "sudo -S <<< ",
    "$(echo a | ",
    "a|sudo ",
    "\"b -c \\\"d",
    "sh -c \"a -b \\\"c\\\" \" ",
    "curl -u 'a':'b' ",
];

/// Brackets in brackets in a path, which is no password: the end of these values is searched for anew at each.
const COSTLY: &str = "pwd=/[{";

/// Steps that one judgement takes, and whether it came to its end.
fn steps(text: &str) -> (u64, bool) {
    let mut redactor = Redactor::default();
    redactor.concerns_text(text);
    (redactor.names.steps.taken, !redactor.names.steps.is_spent())
}

#[test]
fn the_cost_of_a_text_grows_as_its_length() {
    const BYTES: usize = 16 << 10;
    for unit in HOSTILE {
        for before in ["", " -x ", "vault -x '", "select ", "hello "] {
            let of = |bytes: usize| format!("{before}{}(", unit.repeat(bytes / unit.len()));
            let (short, long) = (steps(&of(BYTES)), steps(&of(4 * BYTES)));
            assert!(short.1 && long.1, "{before}{unit}… is taken out as a whole: {short:?}, {long:?}");
            assert!(long.0 <= 5 * short.0, "{before}{unit}…: {} steps, and {} for four times the text", short.0, long.0);
            assert!(long.0 <= 40 * 4 * BYTES as u64, "{before}{unit}…: {} steps", long.0);
        }
    }
}

#[test]
fn no_search_hides_from_the_budget() {
    let start = std::time::Instant::now();
    for unit in HOSTILE {
        for before in ["", "select ", "{\"a\":\""] {
            Redactor::default().concerns_text(&format!("{before}{}(", unit.repeat((256 << 10) / unit.len())));
        }
    }
    // A hundred megabytes. One search of each byte that takes no steps took minutes for each of these texts.
    assert!(start.elapsed() < std::time::Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn objects_and_calls_of_a_megabyte_are_judged_within_their_steps() {
    let units = HOSTILE
        .iter()
        .filter(|unit| ["\"path\"", "\"loc\"", "\"op\"", "param\"", "auth=(", "getconnection("].iter().any(|word| unit.contains(word)));
    let start = std::time::Instant::now();
    let mut most = 0;
    for unit in units {
        // The same beside a value and behind a field that each of them could ask again.
        for before in ["", "{\"value\":\"a\",", "{\"op\":\"add\",\"path\":\"/a/token\",", "auth=("] {
            let text = format!("{before}{}(", unit.repeat((1 << 20) / unit.len()));
            let (taken, is_whole) = steps(&text);
            assert!(is_whole, "{before}{unit}… is taken out as a whole");
            most = most.max(taken / text.len() as u64);
        }
    }
    assert!(most <= 40, "{most} steps a byte");
    assert!(start.elapsed() < std::time::Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn a_command_line_of_many_words_is_judged_in_one_pass() {
    let start = std::time::Instant::now();
    for unit in
        [&["a"][..], &["vault", "kv", "put", "a=b"], &["mysql", "docker", "login", "-x"], &["htpasswd", "-b", "a"], &["config", "set"]]
    {
        let mut words: Vec<String> = unit.iter().cycle().take(200_000).map(|word| (*word).to_owned()).collect();
        Redactor::default().arguments(&mut words);
    }
    // Looking back from each word took hours.
    assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
}

/// A list of these texts.
fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> AttributeValue {
    AttributeValue::Array(words.into_iter().map(|word| AttributeValue::Str(word.into())).collect())
}

#[test]
fn the_cost_of_a_list_grows_as_its_bytes() {
    const WORDS: usize = 20_000;
    // Behind all of these, a word is compared with the facts of each.
    let programs = TOOLS.iter().flat_map(|Tool(names, ..)| *names).chain(POSITIONS.iter().flat_map(|(names, ..)| *names));
    let programs: Vec<&str> = programs.copied().collect();
    for before in [&[][..], &programs] {
        for word in ["", "-", "a", "az", "/p", "A=", "-p1", "config", "mysql"] {
            let words = before.iter().copied().chain(std::iter::repeat_n(word, WORDS));
            let bytes: usize = words.clone().map(|word| word.len() + WORD_BYTES).sum();
            let mut redactor = Redactor::default();
            let words: Vec<&str> = words.collect();
            assert!(commands::credentials_of_list(&words, &mut redactor.names).is_some(), "{word} is taken out as a whole");
            let steps = redactor.names.steps.taken;
            assert!(steps as usize > WORDS && steps <= 8192 + 100 * bytes as u64, "{word}: {steps} steps for {bytes} bytes");
        }
    }
}

#[test]
fn ordinary_requests_take_a_small_part_of_their_steps() {
    let ordinary = [
        ("http.route", "/api/v1/users/{id}/orders"),
        ("url.full", "https://shop.example/api/v1/users/1234/orders?page=2&sort=price&order=asc&p1=4&p2=5"),
        ("user_agent.original", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"),
        ("db.query.text", "SELECT o.id, u.name FROM orders o JOIN users u ON u.id = o.user_id WHERE o.id = $1 AND o.state = $2"),
        ("network.peer.address", "10.0.12.34"),
        ("messaging.message.id", "550e8400-e29b-41d4-a716-446655440000"),
        ("payload", r#"{"item1": 5, "item2": {"name": "lamp", "count": 7}, "at": "2026-11-27T11:24:30Z", "tags": ["a", "b"]}"#),
        (
            "process.command_line",
            "/usr/bin/curl -sSf --retry 3 -H 'Accept: text/html' https://shop.example/ -o out && tar -xzf out.tar.gz -C dir",
        ),
        ("exception.stacktrace", "java.lang.Error: no\n\tat shop.Cart.add(Cart.java:42)\n\tat shop.Main.main(Main.java:7)\n"),
    ];
    let secret =
        [("url.full", "https://ann:hunter2@shop.example/x?token=abcdef123456"), ("password", "hunter2"), ("cmd", "mysql -phunter2 shop")];
    let used = |of: &[(&str, &str)]| {
        let mut redactor = Redactor::default();
        let bytes: usize = 500 * of.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        redactor.begin_request(bytes);
        let before = redactor.names.steps.left_of_request().unwrap();
        for number in 0..500 {
            let value = |text: &str| AttributeValue::Str(format!("{text} {number}").into());
            let pairs = of.iter().map(|(key, text)| Attribute { key: (*key).into(), value: value(text) });
            redactor.attributes(&mut Attributes(pairs.collect()));
        }
        (before - redactor.names.steps.left_of_request().unwrap()) as f64 / bytes as f64
    };
    let (ordinary, secret) = (used(&ordinary), used(&secret));
    assert!((1.0..6.0).contains(&ordinary) && (1.0..16.0).contains(&secret), "{ordinary} and {secret} steps a byte");
}

#[test]
fn what_a_request_cannot_pay_for_is_taken_out() {
    let costly = "curl -x a; ".repeat(1 << 12);
    let value = |text: &str| AttributeValue::Str(text.into());
    let of = |values: &[(&str, AttributeValue)]| {
        Attributes(values.iter().map(|(key, value)| Attribute { key: (*key).into(), value: value.clone() }).collect())
    };
    let ordinary = [
        ("http.route", value("/users")),
        ("pin", value("123")),
        ("http.status", AttributeValue::Int(200)),
        ("list", list(["a", "bcde"])),
        ("payload", AttributeValue::Bytes(b"bytes".to_vec().into())),
    ];
    let mut redactor = Redactor::default();
    // A hundred times what these texts may be long.
    redactor.begin_request(costly.len());
    let mut first = of(&ordinary);
    assert_eq!(redactor.attributes(&mut first), 0);
    let mut many = Attributes((0..200).map(|_| Attribute { key: "note".into(), value: value(&costly) }).collect());
    let taken = redactor.attributes(&mut many);
    assert!((1..200).contains(&taken), "{taken}");
    assert!(many.0[0].value == value(&costly) && many.0[199].value == value(REDACTED));
    let judged = many.0.iter().filter(|attribute| attribute.value != value(REDACTED)).count();
    assert_eq!(judged as u64 + taken, 200, "each is judged, or taken out");
    let mut last = of(&[&ordinary[..], &[("new.key", value("abc")), (REDACTED, value(REDACTED))]].concat());
    redactor.attributes(&mut last);
    let known = [
        ("http.route", value(REDACTED)),
        ("pin", value("123")),
        ("http.status", AttributeValue::Int(200)),
        ("list", value(REDACTED)),
        ("payload", AttributeValue::Bytes(REDACTED.as_bytes().to_vec().into())),
    ];
    // Even three bytes may be a password below a name that nobody judged.
    let unknown = [(REDACTED, value(REDACTED)), (REDACTED, value(REDACTED))];
    assert_eq!(last, of(&[&known[..], &unknown].concat()));
    // What was not judged is not remembered as judged.
    redactor.begin_request(costly.len());
    let again = [&ordinary[..], &[("new.key", value("abc"))]].concat();
    let mut clean = of(&again);
    assert_eq!((redactor.attributes(&mut clean), clean), (0, of(&again)));
}

#[test]
fn a_text_that_would_cost_too_much_is_taken_out_as_a_whole() {
    let text = format!("{}(", COSTLY.repeat(8 << 10));
    assert!(!steps(&text).1);
    let mut redactor = Redactor::default();
    let mut clean = text.clone();
    assert_eq!((redactor.string(&mut clean), &*clean), (1, REDACTED));
    assert_eq!((redactor.string(&mut clean), &*clean), (0, REDACTED));
    let mut attributes = Attributes(vec![Attribute { key: "note".into(), value: AttributeValue::Str(text.into()) }]);
    assert_eq!(redactor.attributes(&mut attributes), 1, "it counts as one");
}

proptest! {
    #[test]
    fn no_text_takes_more_steps_than_its_length_allows(parts in prop::collection::vec((prop::sample::select([HOSTILE, &[COSTLY, "(", ")values"]].concat()), 1usize..400), 1..8)) {
        let text: String = parts.iter().map(|(unit, times)| unit.repeat(*times)).collect();
        // What was begun when the last step was spent comes to its end.
        let most = STEPS_MIN + (STEPS_A_BYTE + 16) * text.len() as u64;
        prop_assert!(steps(&text).0 <= most, "{} steps for {} bytes of {:?}", steps(&text).0, text.len(), parts);
    }
}

#[test]
fn substitutions_inside_each_other_cost_no_more_when_the_steps_are_spent() {
    for times in [100, 1_600] {
        let text = ["$(", "password [\"a ", "docker login -x ", ")values"].map(|unit| unit.repeat(times)).concat();
        let (taken, is_whole) = steps(&text);
        assert!(!is_whole);
        assert!(taken <= STEPS_MIN + (STEPS_A_BYTE + 16) * text.len() as u64, "{taken} steps for {} bytes", text.len());
    }
}
