// Explains why a password hash is not imported: its kind, and what to do. The message never holds a part of the hash.

const RESET = 'leave it out, and the user sets a new password by mail'
const BOUNDS = 'its parameters exceed the limits or it is incomplete'
const CONVERT = 'write it in PHC form, see the guide for migration'

/** Kinds by their looks, the first that fits. */
const KINDS: readonly [looks: RegExp, kind: string, advice: string][] = [
  [/^!/, "a mark of Django's for no password", 'leave it out'],
  [/^\$2x\$/, 'a bcrypt hash of a faulty version ($2x$)', RESET],
  [/^\$2[aby]\$\d\d\$/, 'a bcrypt hash', 'its cost must be 4 to 15, and it has 60 characters'],
  [/^\$2\$/, 'a bcrypt hash without a version', RESET],
  [/^bcrypt\$/, "Django's bcrypt", 'remove "bcrypt$" before "$2b$"'],
  [/^bcrypt_sha256\$/, "Django's bcrypt over SHA-256", RESET],
  [/^argon2\$/, "Django's argon2", 'remove "argon2" before "$argon2id$"'],
  [/^\$argon2d\$/, 'an argon2d hash, which side channels reveal', RESET],
  [/^\$argon2/, 'an argon2 hash', `${BOUNDS}: v=19, at most 1 GiB, 20 passes and 16 lanes`],
  [/^\$fbscrypt\$/, 'a scrypt hash of Firebase', `${BOUNDS}: it needs v=1, n, r, p and the signer key sk`],
  [/^\$scrypt\$/, 'a scrypt hash', `${BOUNDS}: at most 256 MiB, ln, r and p, base64 without padding`],
  [/^scrypt:\d+:\d+:\d+\$/, "Werkzeug's scrypt", CONVERT],
  [/^scrypt\$/, "Django's scrypt", CONVERT],
  [/^pbkdf2:/, "Werkzeug's PBKDF2", CONVERT],
  [
    /^\$?pbkdf2/,
    'a PBKDF2 hash',
    `${BOUNDS}: sha1, sha256 or sha512, at most 5,000,000 iterations (SHA-512: 1,666,666), 16 to 128 bytes`,
  ],
  [/^\{"/, 'a credential of Keycloak', `${BOUNDS}: type password, by pbkdf2, pbkdf2-sha256, pbkdf2-sha512 or argon2`],
  [
    /^A[A-Za-z0-9+/]{50,}={0,2}$/,
    'a hash of ASP.NET Identity',
    `${BOUNDS}: at most 5,000,000 iterations (SHA-512: 1,666,666)`,
  ],
  [/^[0-9a-f]{32}:[0-9a-f]{128}$/i, "better-auth's scrypt", CONVERT],
  [/^\$wp\$/, "WordPress's bcrypt over SHA-384", RESET],
  [/^\$[PH]\$/, 'a phpass hash of WordPress or phpBB', RESET],
  [/^\$S\$/, 'a hash of Drupal', RESET],
  [/^\$(1|apr1)\$/, 'an MD5-crypt hash', RESET],
  [/^\$[56]\$/, 'a SHA-crypt hash', RESET],
  [/^\$(y|gy|7)\$/, 'a yescrypt hash', RESET],
  [/^\{[\w-]+\}/, 'a hash of LDAP', `${RESET}, unless it is {CRYPT} before a bcrypt hash: remove that`],
  [/^\*[0-9A-F]{40}$/i, 'a hash of MySQL', RESET],
  [/^(md5|sha1|sha256|sha512)[$:]/i, 'a plain digest with a salt, which is guessed within seconds', RESET],
  [/^[0-9a-f]{32}([0-9a-f]{8}|[0-9a-f]{32}|[0-9a-f]{96})?$/i, 'a plain digest, which is guessed within seconds', RESET],
]

/** Returns the reason, as `is a phpass hash of WordPress or phpBB: leave it out, …`. */
export function whyRefused(hash: string): string {
  const [, kind, advice] = KINDS.find(([looks]) => looks.test(hash)) ?? ([/^/, 'of an unknown format', RESET] as const)
  return `is ${kind}: ${advice}`
}
