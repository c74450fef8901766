import { expect, test } from 'vitest'
import { isSupportedHash } from './imported-hash.ts'
import { whyRefused } from './refused-hash.ts'

const A = (length: number) => 'a'.repeat(length)

/** Made-up hashes by kind, with a part of the advice. */
test.for<[string, RegExp]>([
  ['!kQ9r', /for no password: leave it out/],
  [`$2x$10$${A(53)}`, /faulty version/],
  [`$2b$16$${A(53)}`, /a bcrypt hash: its cost must be 4 to 15/],
  [`$2$10$${A(53)}`, /without a version/],
  [`bcrypt$$2b$12$${A(53)}`, /Django's bcrypt: remove "bcrypt\$"/],
  [`bcrypt_sha256$$2b$12$${A(53)}`, /over SHA-256/],
  [`argon2$argon2id$v=19$m=102400,t=2,p=8$${A(22)}$${A(43)}`, /Django's argon2: remove "argon2"/],
  [`$argon2d$v=19$m=64,t=2,p=1$${A(22)}$${A(43)}`, /argon2d/],
  [`$argon2id$v=16$m=64,t=2,p=1$${A(22)}$${A(43)}`, /an argon2 hash: .* v=19/],
  [`$fbscrypt$v=1,n=14,r=8,p=1$${A(8)}$${A(8)}`, /Firebase: .* signer key/],
  [`$scrypt$ln=20,r=8,p=1$${A(22)}$${A(43)}`, /a scrypt hash: .* 256 MiB/],
  [`scrypt:32768:8:1$${A(16)}$${A(128)}`, /Werkzeug's scrypt: write it in PHC form/],
  [`scrypt$${A(16)}$16384$8$1$${A(88)}`, /Django's scrypt: write it in PHC form/],
  [`pbkdf2:sha256:600000$${A(16)}$${A(64)}`, /Werkzeug's PBKDF2: write it in PHC form/],
  [`pbkdf2_sha256$9000000$${A(16)}$${A(43)}=`, /a PBKDF2 hash: .* 5,000,000 iterations/],
  [`$pbkdf2-md5$1000$${A(22)}$${A(43)}`, /a PBKDF2 hash/],
  ['{"type":"otp"}', /a credential of Keycloak/],
  [`AQAAAA${A(60)}==`, /ASP\.NET Identity/],
  [`${A(32)}:${A(128)}`, /better-auth's scrypt: write it in PHC form/],
  [`$wp$2y$10$${A(53)}`, /WordPress's bcrypt/],
  [`$P$B${A(30)}`, /a phpass hash of WordPress or phpBB/],
  [`$S$D${A(51)}`, /Drupal/],
  [`$1$${A(8)}$${A(22)}`, /MD5-crypt/],
  [`$6$rounds=5000$${A(16)}$${A(86)}`, /SHA-crypt/],
  [`$y$j9T$${A(22)}$${A(43)}`, /yescrypt/],
  [`{SSHA}${A(32)}`, /LDAP/],
  [`*${A(40)}`, /MySQL/],
  [`sha1$${A(8)}$${A(40)}`, /a plain digest with a salt/],
  [A(32), /a plain digest/],
  [A(40), /a plain digest/],
  [A(64), /a plain digest/],
  [A(128), /a plain digest/],
  ['correct horse', /of an unknown format: leave it out/],
])('%s %s', ([hash, reason]) => {
  expect(isSupportedHash(hash)).toBe(false)
  expect(whyRefused(hash)).toMatch(reason)
  expect(whyRefused(hash)).not.toContain('aaaaaaaa')
})
