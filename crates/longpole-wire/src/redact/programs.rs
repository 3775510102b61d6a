//! Facts of the manuals of programs: which of their words are credentials.
//!
//! ```text
//! curl -u ann:hunter2            an option, and how it takes its value
//! vault login hunter2            a word behind others
//! vault kv put a/b name=hunter2  all values
//! ```

/// How an option takes its credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// As the next word, or attached.
    Value,
    /// Only as the next word: attached to `-p` may be another option.
    Next,
    /// Only attached: alone it asks.
    Attached,
    /// Behind the first colon of its value: `ann:hunter2`.
    BehindColon,
    /// The same, and all of it where another option says that it is a token: `http -A bearer -a …`.
    BehindColonOrBearer,
    /// Behind `%`: `ann%hunter2`.
    BehindPercent,
    /// Behind the comma: `ann,hunter2`.
    BehindComma,
    /// Behind `pass:`; `env:` and `file:` say where it is.
    BehindPass,
    /// Behind `=`: `--from-literal=name=value`.
    BehindEquals,
    /// Behind the first colon and before the last `@`: `ann:hunter2@db`.
    BeforeAt,
}

impl Takes {
    /// What stands between a user and the credential.
    pub(super) fn mark(self) -> Option<char> {
        match self {
            BehindColon | BehindColonOrBearer => Some(':'),
            BehindPercent => Some('%'),
            BehindComma => Some(','),
            BehindEquals => Some('='),
            Value | Next | Attached | BehindPass | BeforeAt => None,
        }
    }
}

use Takes::{Attached, BeforeAt, BehindColon, BehindColonOrBearer, BehindComma, BehindEquals, BehindPass, BehindPercent, Next, Value};

/// Programs, a word that has to stand before the option (or none), and their options.
pub(super) struct Tool(pub(super) &'static [&'static str], pub(super) &'static str, pub(super) &'static [(&'static str, Takes)]);

/// Facts of their manuals.
#[rustfmt::skip]
pub(super) const TOOLS: &[Tool] = &[
    Tool(&["curl"], "", &[("-u", BehindColon), ("--user", BehindColon), ("-U", BehindColon), ("--proxy-user", BehindColon), ("-E", BehindColon),
        ("--cert", BehindColon), ("--pass", Value), ("--proxy-pass", Value), ("--oauth2-bearer", Value), ("-b", Value), ("--cookie", Value)]),
    Tool(&["wget", "wget2"], "", &[("--http-passwd", Value), ("--post-data", BehindEquals)]),
    Tool(&["http", "https", "xh", "xhs"], "", &[("-a", BehindColonOrBearer), ("--auth", BehindColonOrBearer)]),
    Tool(&["ab", "hey", "oha"], "", &[("-A", BehindColon), ("-a", BehindColon), ("-P", BehindColon)]),
    Tool(&["etcdctl"], "", &[("--user", BehindColon)]),
    Tool(&["mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlcheck", "mysqlshow", "mysqlbinlog", "mysqlpump", "mysqlslap", "mysqlsh", "mariadb",
        "mariadb-dump", "mariadb-admin", "mariadb-import", "mariadb-check", "xtrabackup", "mariabackup", "mydumper", "mycli"], "", &[("-p", Attached)]),
    Tool(&["sshpass"], "", &[("-p", Value)]),
    Tool(&["redis-cli", "valkey-cli", "keydb-cli"], "", &[("-a", Value), ("--pass", Value)]),
    Tool(&["docker", "podman", "nerdctl", "buildah", "skopeo", "helm", "oras", "crane", "az", "oc", "cf", "ibmcloud", "argocd", "faas-cli", "flux",
        "img", "regctl", "rancher", "influx", "jira"], "login", &[("-p", Value), ("-t", Value)]),
    Tool(&["mongosh", "mongo", "mongodump", "mongorestore", "mongoexport", "mongoimport", "mongostat", "mongotop", "mongofiles"], "", &[("-p", Value)]),
    Tool(&["ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldapwhoami", "ldapcompare", "ldapmodrdn", "ldappasswd", "ldapexop"], "",
        &[("-w", Value), ("-s", Next), ("-a", Next)]),
    Tool(&["smbclient", "rpcclient", "smbget", "smbmap", "net", "wbinfo", "smbpasswd", "nmblookup", "smbcacls"], "", &[("-U", BehindPercent), ("--user", BehindPercent)]),
    Tool(&["openssl"], "", &[("-passin", BehindPass), ("-passout", BehindPass), ("-pass", BehindPass), ("-password", BehindPass), ("-srppass", BehindPass),
        ("-k", Next), ("-K", Next), ("-macopt", BehindColon)]),
    Tool(&["zip", "unzip"], "", &[("-P", Value)]),
    Tool(&["7z", "7za", "7zz", "7zr", "rar", "unrar"], "", &[("-p", Attached), ("-hp", Attached)]),
    Tool(&["sqlcmd", "bcp", "osql", "tsql", "isql"], "", &[("-P", Value)]),
    Tool(&["cqlsh", "beeline", "rabbitmqadmin", "twine", "freerdp", "rdesktop", "sendemail", "useradd", "usermod", "mount.cifs", "hdbsql", "vsql",
        "snowsql", "impala-shell", "presto", "trino", "cbq", "cypher-shell", "clickhouse-client", "arangosh", "ncftp", "ncftpput", "ncftpget"], "",
        &[("-p", Value), ("-w", Next)]),
    Tool(&["lftp"], "", &[("-u", BehindComma)]),
    Tool(&["snmpwalk", "snmpget", "snmpset", "snmpbulkwalk", "snmptrap", "snmptable"], "", &[("-c", Value), ("-A", Value), ("-X", Value)]),
    Tool(&["ipmitool"], "", &[("-P", Value), ("-K", Value)]),
    Tool(&["mosquitto_pub", "mosquitto_sub", "mosquitto_rr"], "", &[("-P", Value), ("--pw", Value)]),
    Tool(&["swaks"], "", &[("-ap", Next), ("--auth-password", Value)]),
    Tool(&["ssh-keygen"], "", &[("-N", Value), ("-P", Value)]),
    Tool(&["keytool", "jarsigner"], "", &[("-storepass", Next), ("-keypass", Next), ("-srcstorepass", Next), ("-deststorepass", Next), ("-new", Next)]),
    Tool(&["kubectl", "oc", "k3s"], "secret", &[("--from-literal", BehindEquals), ("--docker-password", Value)]),
    Tool(&["gh"], "secret", &[("-b", Value), ("--body", Value)]),
    Tool(&["consul"], "", &[("-encrypt", Next)]),
    Tool(&["codecov", "codecov.sh", "codecovcli", "influx", "coveralls"], "", &[("-t", Value)]),
    Tool(&["xfreerdp", "xfreerdp3", "wlfreerdp", "sdl-freerdp", "mstsc"], "", &[("/p:", Value), ("/gp:", Value), ("/pth:", Value)]),
    Tool(&["sendemail", "sendEmail"], "", &[("-xp", Next)]),
    Tool(&["plink", "pscp", "psftp", "putty", "kitty"], "", &[("-pw", Next)]),
    Tool(&["aws"], "put-parameter", &[("--value", Value)]),
    Tool(&["az"], "secret", &[("--value", Value)]),
    Tool(&["dotnet"], "push", &[("-k", Value)]),
    Tool(&["dotnet"], "source", &[("-p", Value)]),
    Tool(&["poetry"], "publish", &[("-p", Value)]),
    Tool(&["influx"], "setup", &[("-p", Value), ("-t", Value)]),
    Tool(&["oras"], "push", &[("-p", Value)]),
    Tool(&["oras"], "pull", &[("-p", Value)]),
    Tool(&["conan"], "login", &[("-p", Value)]),
    Tool(&["airflow"], "create", &[("-p", Value)]),
    Tool(&["glab"], "variable", &[("-v", Value), ("--value", Value)]),
    Tool(&["kadmin"], "", &[("-w", Value)]),
    Tool(&["slappasswd"], "", &[("-s", Next)]),
    Tool(&["ngrok"], "", &[("--basic-auth", BehindColon)]),
    Tool(&["ctr"], "", &[("-u", BehindColon), ("--user", BehindColon)]),
    Tool(&["svn"], "", &[("--passwd", Value)]),
    Tool(&["az"], "server", &[("-p", Value)]),
    Tool(&["az"], "flexible-server", &[("-p", Value)]),
    Tool(&["mysqlsh"], "", &[("--uri", BeforeAt)]),
    Tool(&["govc"], "", &[("-u", BeforeAt)]),
    Tool(&["cvs"], "", &[("-d", BeforeAt)]),
    Tool(&["winexe", "pth-winexe", "smbtree"], "", &[("-U", BehindPercent), ("--user", BehindPercent)]),
    Tool(&["yt-dlp", "youtube-dl", "ksql", "add-user.sh", "racadm", "esxcli", "doveadm", "hydra", "crackmapexec", "netexec", "nxc", "evil-winrm", "steghide",
        "aescrypt", "psexec"], "", &[("-p", Value)]),
    Tool(&["xcrun"], "altool", &[("-p", Value)]),
    Tool(&["conan"], "user", &[("-p", Value)]),
    Tool(&["caddy"], "hash-password", &[("-p", Value), ("--plaintext", Value)]),
    Tool(&["eas"], "secret:create", &[("--value", Value)]),
    Tool(&["p4", "knife", "ccrypt"], "", &[("-P", Value)]),
    Tool(&["ccrypt", "ccencrypt", "ccdecrypt"], "", &[("-K", Value)]),
    Tool(&["openai"], "", &[("-k", Value)]),
    Tool(&["doctl", "vercel"], "", &[("-t", Value)]),
    Tool(&["k3s"], "agent", &[("-t", Value)]),
    Tool(&["k3s"], "server", &[("-t", Value)]),
    Tool(&["netlify"], "", &[("--auth", Value)]),
    Tool(&["jenkins-cli", "jenkins-cli.jar"], "", &[("-auth", BehindColon)]),
    Tool(&["pdftotext", "pdftoppm", "pdfinfo", "pdftocairo", "pdfimages", "pdftohtml", "pdffonts"], "", &[("-upw", Next), ("-opw", Next)]),
    Tool(&["security"], "add-generic-password", &[("-w", Value)]),
    Tool(&["security"], "add-internet-password", &[("-w", Value)]),
    Tool(&["security"], "unlock-keychain", &[("-p", Value)]),
    Tool(&["security"], "create-keychain", &[("-p", Value)]),
    Tool(&["security"], "set-key-partition-list", &[("-k", Value)]),
    Tool(&["security"], "import", &[("-P", Value)]),
    Tool(&["virsh"], "secret-set-value", &[("--base64", Value)]),
    Tool(&["wmic", "cmdkey"], "", &[("/password:", Value), ("/pass:", Value)]),
    Tool(&["open"], "", &[("-u", BehindComma)]),
    Tool(&["cryptsetup", "borg", "restic", "age", "ansible-vault"], "", &[("--passphrase", Value)]),
];

/// Programs that take it without an option, and behind which of their words: the words that follow, from which on, and how.
#[rustfmt::skip]
pub(super) const POSITIONS: &[(&[&str], &[&str], usize, Takes)] = &[
    (&["vault", "bao"], &["login"], 0, Value), (&["vault", "bao"], &["unseal"], 0, Value), (&["ngrok"], &["authtoken"], 0, Value), (&["ngrok"], &["add-authtoken"], 0, Value),
    (&["snyk"], &["auth"], 0, Value), (&["rabbitmqctl"], &["add_user"], 1, Value), (&["rabbitmqctl"], &["change_password"], 1, Value),
    (&["rabbitmqctl"], &["authenticate_user"], 1, Value), (&["cf"], &["auth"], 1, Value), (&["rclone"], &["obscure"], 0, Value), (&["openssl"], &["passwd"], 0, Value),
    (&["mc"], &["alias", "set"], 2, Value), (&["redis-cli", "valkey-cli"], &["auth"], 0, Value), (&["redis-cli", "valkey-cli"], &["AUTH"], 0, Value),
    (&["nmcli"], &["password"], 0, Value), (&["smbpasswd"], &[], 1, Value), (&["mysqladmin", "mariadb-admin"], &["password"], 0, Value), (&["cargo"], &["login"], 0, Value),
    (&["wandb"], &["login"], 0, Value), (&["bw"], &["login"], 1, Value), (&["bw"], &["unlock"], 0, Value), (&["mc"], &["admin", "user", "add"], 2, Value),
    (&["samba-tool"], &["user", "create"], 1, Value), (&["dotnet"], &["user-secrets", "set"], 1, Value),
    (&["grafana", "grafana-cli"], &["reset-admin-password"], 0, Value),
    (&["vault", "bao"], &["unwrap"], 0, Value), (&["vault", "bao"], &["token", "revoke"], 0, Value), (&["vault", "bao"], &["token", "lookup"], 0, Value),
    (&["vault", "bao"], &["token", "renew"], 0, Value), (&["etcdctl"], &["user", "add"], 0, BehindColon),
    (&["bundle"], &["config"], 1, BehindColon), (&["wpa_passphrase"], &[], 1, Value), (&["virsh"], &["secret-set-value"], 1, Value),
    (&["nuget"], &["setapikey"], 0, Value), (&["nuget"], &["setApiKey"], 0, Value), (&["neo4j-admin"], &["set-initial-password"], 0, Value),
    (&["mosquitto_passwd"], &["-b"], 2, Value), (&["mc"], &["config", "host", "add"], 2, Value),
    (&["consul"], &["set-agent-token"], 1, Value), (&["cloudflared"], &["service", "install"], 0, Value), (&["iwconfig"], &["key"], 0, Value),
    (&["ansible-vault"], &["encrypt_string"], 0, Value),
];

/// Programs of Oracle, which take `ann/hunter2@db`.
pub(super) const SQLPLUS: &[&str] = &["sqlplus", "sqlcl", "sqlldr", "impdp", "expdp", "rman"];

/// Programs that take `ann:hunter2@db` without a scheme.
#[rustfmt::skip]
pub(super) const LOGINS: &[&str] = &[
    "mysqlsh", "impacket-psexec", "impacket-smbexec", "impacket-wmiexec", "impacket-secretsdump", "impacket-smbclient", "impacket-mssqlclient",
    "psexec.py", "smbexec.py", "wmiexec.py", "secretsdump.py", "mssqlclient.py",
];

/// Programs whose words `name=value` are all secrets, behind these words.
pub(super) const PAIRS: &[(&[&str], &[&str])] = &[
    (&["vault", "bao"], &["kv", "put"]),
    (&["vault", "bao"], &["kv", "patch"]),
    (&["vault", "bao"], &["write"]),
    (&["fly", "flyctl"], &["secrets", "set"]),
    (&["supabase"], &["secrets", "set"]),
    (&["doppler"], &["secrets", "set"]),
    (&["heroku"], &["config:set"]),
    (&["infisical"], &["secrets", "set"]),
    (&["firebase"], &["functions:config:set"]),
    (&["travis"], &["encrypt"]),
];

/// Programs that take names with their values, behind these words: `git config user.password hunter2`, `rclone config create x sftp pass hunter2`.
pub(super) const NAMED: &[(&[&str], &[&str])] = &[
    (&["git", "poetry", "composer"], &["config"]),
    (&["rclone"], &["config", "create"]),
    (&["rclone"], &["config", "update"]),
    (&["nmcli"], &["modify"]),
    (&["nmcli"], &["add"]),
];

/// Beginnings of names behind which a user and a password, or a token stands: `http-basic.acme ann hunter2`.
pub(super) const NAMED_BY_BEGINNING: &[(&str, usize)] =
    &[("http-basic.", 2), ("pypi-token.", 1), ("github-oauth.", 1), ("gitlab-oauth.", 1), ("gitlab-token.", 1), ("bearer.", 1)];

/// Words behind which a name and a value stand: `setenv DB_PASSWORD hunter2`, `ENV DB_PASSWORD hunter2` of a Dockerfile.
pub(super) const SETTERS: &[&str] = &["setenv", "setx", "ENV", "set-env", "env:set"];

/// Words behind them up to the value: `cf set-env shop DB_PASSWORD hunter2`.
pub(super) const SETTER_WORDS: usize = 3;

/// Whether this program reads a credential that another one writes, without any word of its own.
pub(super) fn reads_input(program: &[u8]) -> bool {
    matches!(program, b"chpasswd" | b"passwd" | b"kinit")
}

/// Whether this program takes a credential without an option, or may run another one that does.
pub(super) fn takes_words(program: &[u8]) -> bool {
    matches!(
        program,
        b"vault"
            | b"bao"
            | b"ngrok"
            | b"snyk"
            | b"rabbitmqctl"
            | b"cf"
            | b"rclone"
            | b"openssl"
            | b"mc"
            | b"redis-cli"
            | b"valkey-cli"
            | b"nmcli"
            | b"smbpasswd"
            | b"mysqladmin"
            | b"mariadb-admin"
            | b"cargo"
            | b"bw"
            | b"wandb"
            | b"samba-tool"
            | b"dotnet"
            | b"grafana"
            | b"grafana-cli"
            | b"netlify"
            | b"setenv"
            | b"ENV"
            | b"pulumi"
            | b"esc"
            | b"xfreerdp"
            | b"xfreerdp3"
            | b"wlfreerdp"
            | b"sdl-freerdp"
            | b"mstsc"
            | b"fly"
            | b"flyctl"
            | b"supabase"
            | b"doppler"
            | b"heroku"
            | b"sqlplus"
            | b"sqlldr"
            | b"impdp"
            | b"expdp"
            | b"rman"
            | b"wpa_passphrase"
            | b"virsh"
            | b"nuget"
            | b"neo4j-admin"
            | b"mosquitto_passwd"
            | b"etcdctl"
            | b"bundle"
            | b"consul"
            | b"cloudflared"
            | b"iwconfig"
            | b"ansible-vault"
            | b"infisical"
            | b"firebase"
            | b"travis"
            | b"git"
            | b"poetry"
            | b"composer"
            | b"setx"
            | b"sqlcl"
            | b"mysqlsh"
            | b"impacket-psexec"
            | b"impacket-smbexec"
            | b"impacket-wmiexec"
            | b"impacket-secretsdump"
            | b"impacket-smbclient"
            | b"impacket-mssqlclient"
            | b"psexec.py"
            | b"smbexec.py"
            | b"wmiexec.py"
            | b"secretsdump.py"
            | b"mssqlclient.py"
            | b"wmic"
            | b"sqlpackage"
            | b"sqlpackage.exe"
            | b"cmdkey"
            | b"chpasswd"
            | b"passwd"
            | b"kinit"
            | b"cryptsetup"
            | b"wrangler"
            | b"gcloud"
            | b"gh"
            | b"docker"
            | b"podman"
            | b"kubectl"
            | b"ssh"
            | b"sh"
            | b"bash"
    )
}
