//! What Sprig and Helm have and this crate leaves out, and why.

const CLOCK: &str = "it reads the clock, and a template has to render the same each time";
const ZONE: &str = "it depends on the machine's time zone, and a template has to render the same \
                    each time";
const RANDOM: &str = "it is random, and a template has to render the same each time";
const ENVIRONMENT: &str = "it reads the environment, and a template has to render the same \
                           everywhere";
const NETWORK: &str = "it asks the network, and a template has to render the same each time";
const SECRETS: &str = "it makes secrets, which would stand in what is rendered";

/// Names, and the reasons.
pub(super) const LEFT_OUT: [(&str, &str); 39] = [
    ("ago", CLOCK),
    ("bcrypt", RANDOM),
    ("buildCustomCert", SECRETS),
    ("date", CLOCK),
    ("dateInZone", CLOCK),
    ("dateModify", ZONE),
    ("date_in_zone", CLOCK),
    ("date_modify", ZONE),
    ("decryptAES", SECRETS),
    ("derivePassword", SECRETS),
    ("encryptAES", RANDOM),
    ("env", ENVIRONMENT),
    ("expandenv", ENVIRONMENT),
    ("genCA", RANDOM),
    ("genCAWithKey", RANDOM),
    ("genPrivateKey", RANDOM),
    ("genSelfSignedCert", RANDOM),
    ("genSelfSignedCertWithKey", RANDOM),
    ("genSignedCert", RANDOM),
    ("genSignedCertWithKey", RANDOM),
    ("getHostByName", NETWORK),
    ("htmlDate", CLOCK),
    ("htmlDateInZone", CLOCK),
    ("htpasswd", RANDOM),
    ("lookup", NETWORK),
    ("mustDateModify", ZONE),
    ("mustToDate", ZONE),
    ("must_date_modify", ZONE),
    ("now", CLOCK),
    ("randAlpha", RANDOM),
    ("randAlphaNum", RANDOM),
    ("randAscii", RANDOM),
    ("randBytes", RANDOM),
    ("randInt", RANDOM),
    ("randNumeric", RANDOM),
    ("shuffle", RANDOM),
    ("toDate", ZONE),
    ("unixEpoch", CLOCK),
    ("uuidv4", RANDOM),
];
