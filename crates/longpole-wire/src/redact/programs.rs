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
}

impl Takes {
    /// What stands between a user and the credential.
    pub(super) fn mark(self) -> Option<char> {
        match self {
            BehindColon | BehindColonOrBearer => Some(':'),
            BehindPercent => Some('%'),
            BehindComma => Some(','),
            BehindEquals => Some('='),
            Value | Next | Attached | BehindPass => None,
        }
    }
}

use Takes::{Attached, BehindColon, BehindColonOrBearer, BehindComma, BehindEquals, BehindPass, BehindPercent, Next, Value};

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
        "img", "regctl", "rancher", "doctl", "influx"], "login", &[("-p", Value), ("-t", Value)]),
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
    Tool(&["gh", "codecov", "ngrok"], "", &[("-b", Next), ("--body", Value)]),
    Tool(&["codecov", "codecovcli", "influx", "coveralls"], "", &[("-t", Value)]),
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
    Tool(&["cryptsetup", "borg", "restic", "age", "ansible-vault"], "", &[("--passphrase", Value)]),
];

/// Programs that take it without an option, and behind which of their words: the words that follow, from which on.
#[rustfmt::skip]
pub(super) const POSITIONS: &[(&[&str], &[&str], usize)] = &[
    (&["vault", "bao"], &["login"], 0), (&["vault", "bao"], &["unseal"], 0), (&["ngrok"], &["authtoken"], 0), (&["ngrok"], &["add-authtoken"], 0),
    (&["snyk"], &["auth"], 0), (&["rabbitmqctl"], &["add_user"], 1), (&["rabbitmqctl"], &["change_password"], 1),
    (&["rabbitmqctl"], &["authenticate_user"], 1), (&["cf"], &["auth"], 1), (&["rclone"], &["obscure"], 0), (&["openssl"], &["passwd"], 0),
    (&["mc"], &["alias", "set"], 2), (&["redis-cli", "valkey-cli"], &["auth"], 0), (&["redis-cli", "valkey-cli"], &["AUTH"], 0),
    (&["nmcli"], &["password"], 0), (&["smbpasswd"], &[], 1), (&["mysqladmin", "mariadb-admin"], &["password"], 0), (&["cargo"], &["login"], 0),
    (&["wandb"], &["login"], 0), (&["bw"], &["login"], 1), (&["bw"], &["unlock"], 0), (&["mc"], &["admin", "user", "add"], 2),
    (&["samba-tool"], &["user", "create"], 1), (&["dotnet"], &["user-secrets", "set"], 1),
    (&["grafana", "grafana-cli"], &["reset-admin-password"], 0),
];

/// Programs of Oracle, which take `ann/hunter2@db`.
pub(super) const SQLPLUS: &[&str] = &["sqlplus", "sqlldr", "impdp", "expdp", "rman"];

/// Programs whose words `name=value` are all secrets, behind these words.
pub(super) const PAIRS: &[(&[&str], &[&str])] = &[
    (&["vault", "bao"], &["kv", "put"]),
    (&["vault", "bao"], &["kv", "patch"]),
    (&["vault", "bao"], &["write"]),
    (&["fly", "flyctl"], &["secrets", "set"]),
    (&["supabase"], &["secrets", "set"]),
    (&["doppler"], &["secrets", "set"]),
    (&["heroku"], &["config:set"]),
];

/// Words behind which a name and a value stand: `setenv DB_PASSWORD hunter2`, `ENV DB_PASSWORD hunter2` of a Dockerfile.
pub(super) const SETTERS: &[&str] = &["setenv", "ENV", "set-env", "env:set"];

/// Words behind them up to the value: `cf set-env shop DB_PASSWORD hunter2`.
pub(super) const SETTER_WORDS: usize = 3;

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
            | b"docker"
            | b"podman"
            | b"kubectl"
            | b"ssh"
            | b"sh"
            | b"bash"
    )
}
