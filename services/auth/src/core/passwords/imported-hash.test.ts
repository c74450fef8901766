import { createCipheriv, scryptSync } from 'node:crypto'
import { hash as argon2, argon2d, argon2i, argon2id } from 'argon2'
import bcrypt from 'bcrypt'
import { describe, expect, test } from 'vitest'
import { createPasswords } from './hash-password.ts'
import { isSupportedHash, verifyImported } from './imported-hash.ts'

const PASSWORD = 'correct horse battery'

/** The published example of Firebase's own scrypt tool. */
const FIREBASE =
  '$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==' +
  '$42xEC+ixf3L2lw==$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ=='
/** The pgcrypto example of the crypt(3) test vectors: password U*U, cost 5. */
const BCRYPT = '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'
const SALT = Buffer.from('sixteen-byte-slt')

const unpadded = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')
const scryptHash = (password: string, ln: number, length = 32) =>
  `$scrypt$ln=${ln},r=8,p=1$${unpadded(SALT)}$${unpadded(scryptSync(password, SALT, length, { N: 2 ** ln, r: 8, p: 1 }))}`

describe('passwords of other systems', async () => {
  test.each([
    ['bcrypt $2a$', BCRYPT, 'U*U'],
    ['bcrypt $2b$', BCRYPT.replace('2a', '2b'), 'U*U'],
    ['bcrypt $2y$', BCRYPT.replace('2a', '2y'), 'U*U'],
    ['argon2id', await argon2(PASSWORD, { type: argon2id, memoryCost: 1024, timeCost: 2, parallelism: 2 }), PASSWORD],
    ['argon2i', await argon2(PASSWORD, { type: argon2i, memoryCost: 64, timeCost: 3, parallelism: 1 }), PASSWORD],
    ['Firebase scrypt', FIREBASE, 'user1password'],
    ['scrypt', scryptHash(PASSWORD, 10), PASSWORD],
  ])('%s: the old password is right, others are wrong', async (_name, hash, password) => {
    expect(isSupportedHash(hash)).toBe(true)
    expect(await verifyImported(hash, password)).toBe(true)
    for (const wrong of ['', `${password} `, password.toUpperCase().toLowerCase().slice(1), 'something else']) {
      expect(await verifyImported(hash, wrong)).toBe(false)
    }
  })

  test('Firebase without a salt separator', async () => {
    const key = scryptSync(PASSWORD, SALT, 32, { N: 1024, r: 8, p: 1 })
    const signer = Buffer.alloc(64, 7)
    const hash = createCipheriv('aes-256-ctr', key, Buffer.alloc(16)).update(signer)
    const text = `$fbscrypt$v=1,n=10,r=8,p=1,sk=${signer.toString('base64')}$${SALT.toString('base64')}$${hash.toString('base64')}`
    expect(await verifyImported(text, PASSWORD)).toBe(true)
    expect(await verifyImported(text, `${PASSWORD}!`)).toBe(false)
  })
})

const A = (parameters: string, salt = 'c2l4dGVlbi1ieXRlLXNsdA', hash = 'A'.repeat(43)) =>
  `$argon2id$v=19$${parameters}$${salt}$${hash}`
const S = (parameters: string) => `$scrypt$${parameters}$c2FsdA$${'A'.repeat(43)}`
const F = (parameters: string) => FIREBASE.replace('v=1,n=14,r=8,p=1', parameters)

test.each([
  ['the largest argon2', A('m=1048576,t=20,p=16')],
  ['bcrypt of cost 15', BCRYPT.replace('05', '15')],
  ['scrypt of 256 MiB', S('ln=17,r=15,p=1')],
])('within bounds: %s', (_name, hash) => expect(isSupportedHash(hash)).toBe(true))

test.each([
  ['nothing', ''],
  ['a plain password', PASSWORD],
  ['MD5', '$1$saltsalt$qjXMvbEw8oaL.CzflDtaK/'],
  ['bcrypt without a letter', BCRYPT.replace('2a', '2')],
  ['bcrypt of the faulty $2x$', BCRYPT.replace('2a', '2x')],
  ['bcrypt of cost 3', BCRYPT.replace('05', '03')],
  ['bcrypt of cost 16, which takes seconds', BCRYPT.replace('05', '16')],
  ['bcrypt of cost 31, which takes days', BCRYPT.replace('05', '31')],
  ['bcrypt cut short', BCRYPT.slice(0, -1)],
  ['bcrypt with more behind it', `${BCRYPT}\n`],
  ['argon2 with a parameter twice', A('m=64,m=64,p=1')],
  ['argon2d', A('m=64,t=2,p=1').replace('argon2id', 'argon2d')],
  ['argon2 of the first version', A('m=64,t=2,p=1').replace('v=19', 'v=16')],
  ['argon2 without a version', A('m=64,t=2,p=1').replace('v=19$', '')],
  ['argon2 with data', A('m=64,t=2,p=1,data=c2FsdA')],
  ['argon2 with a key id', A('m=64,t=2,p=1,keyid=c2FsdA')],
  ['argon2 over the memory bound', A('m=1048577,t=2,p=1')],
  ['argon2 over the pass bound', A('m=64,t=21,p=1')],
  ['argon2 over the lane bound', A('m=4096,t=2,p=17')],
  ['argon2 of no passes', A('m=64,t=0,p=1')],
  ['argon2 with too little memory for its lanes', A('m=15,t=2,p=2')],
  ['argon2 without salt', A('m=64,t=2,p=1', '')],
  ['argon2 without hash', A('m=64,t=2,p=1', undefined, '')],
  ['argon2 with one byte of hash, which every 256th password meets', A('m=64,t=2,p=1', undefined, 'AA')],
  ['argon2 in the wrong base64', A('m=64,t=2,p=1', 'c2l4dGVlbi1ieXRlLXNsdA==')],
  ['scrypt of a gigabyte', S('ln=20,r=8,p=1')],
  ['scrypt of a minute', S('ln=14,r=8,p=255')],
  ['scrypt of N = 1', S('ln=0,r=8,p=1')],
  ['scrypt without blocks', S('ln=14,r=0,p=1')],
  ['Firebase of another version', F('v=2,n=14,r=8,p=1')],
  ['Firebase of a gigabyte', F('v=1,n=20,r=8,p=1')],
  ['Firebase with p over 255', F('v=1,n=4,r=1,p=256')],
  ['Firebase without a signer key', FIREBASE.replace(/,sk=[^$]+/, '')],
  ['Firebase with a hash shorter than its key', FIREBASE.slice(0, -4)],
  ['a megabyte', `${A('m=64,t=2,p=1')}${'A'.repeat(1_000_000)}`],
])('refused, and no password verifies: %s', async (_name, hash) => {
  expect(isSupportedHash(hash)).toBe(false)
})

test('a corrupt hash is a wrong password, not a failure', async () => {
  const passwords = await createPasswords({ memoryKib: 64, passes: 2, lanes: 1 })
  const corrupt = [
    'x',
    '$argon2id$',
    '$argon2id$v=19$m=,t=,p=$$',
    A('m=64,t=2,p=1', '!!'),
    BCRYPT.slice(0, -1),
    '$fbscrypt$',
    '$scrypt$',
  ]
  for (const hash of corrupt) expect(await passwords.verify(hash, PASSWORD)).toBe(false)
})

test('refused algorithms do not verify when they are in the database', async () => {
  const insecure = await argon2(PASSWORD, { type: argon2d, memoryCost: 64, timeCost: 2, parallelism: 1 })
  expect(await verifyImported(insecure, PASSWORD)).toBe(false)
})

describe('hashes replaced at the next sign-in', async () => {
  const passwords = await createPasswords({ memoryKib: 64, passes: 2, lanes: 1 })

  test('are all but ours with the present parameters', async () => {
    expect(passwords.needsRehash(await passwords.hash(PASSWORD), PASSWORD)).toBe(false)
    for (const hash of [BCRYPT, FIREBASE, scryptHash(PASSWORD, 4), A('m=64,t=3,p=1'), A('m=128,t=2,p=1')]) {
      expect(passwords.needsRehash(hash, PASSWORD)).toBe(true)
    }
    expect(passwords.needsRehash(A('m=64,t=2,p=1').replace('argon2id', 'argon2i'), PASSWORD)).toBe(true)
  })

  test('do not include bcrypt of a password over 72 bytes, whose end was not proven', async () => {
    const long = 'ü'.repeat(40)
    const hash = await bcrypt.hash(long, 4)
    expect(await passwords.verify(hash, long)).toBe(true)
    expect(await passwords.verify(hash, `${'ü'.repeat(36)}with a slip`)).toBe(true)
    expect(await passwords.verify(hash, 'ü'.repeat(35))).toBe(false)
    expect(passwords.needsRehash(hash, long)).toBe(false)
    expect(passwords.needsRehash(hash, 'ü'.repeat(36))).toBe(true)
  })

  test('a password of 255 bytes is read to its 72nd under $2a$ too', async () => {
    const long = 'correct horse battery staple '.repeat(9).slice(0, 255)
    const hash = (await bcrypt.hash(long, 4)).replace('$2b$', '$2a$')
    expect(await passwords.verify(hash, long)).toBe(true)
    expect(await passwords.verify(hash, 'c'.repeat(255))).toBe(false)
  })
})

test('costly hashes are verified one at a time, and few may wait', async () => {
  const passwords = await createPasswords({ memoryKib: 64, passes: 2, lanes: 1 })
  const large = A('m=65537,t=1,p=1')
  const attempts = await Promise.allSettled([
    ...Array.from({ length: 10 }, () => passwords.verify(large, PASSWORD)),
    passwords.verify(scryptHash(PASSWORD, 4), PASSWORD),
  ])
  const refused = attempts.filter((each) => each.status === 'rejected')
  expect(refused).toMatchObject([{ reason: { code: 'over_capacity' } }])
  expect(attempts.at(-1)).toEqual({ status: 'fulfilled', value: true })
})

test('our older hashes with larger parameters than are accepted from elsewhere still verify', async () => {
  const before = await createPasswords({ memoryKib: 64, passes: 21, lanes: 1 })
  const hash = await before.hash(PASSWORD)
  expect(isSupportedHash(hash)).toBe(false)
  const after = await createPasswords({ memoryKib: 64, passes: 2, lanes: 1 })
  expect(await after.verify(hash, PASSWORD)).toBe(true)
  expect(await after.verify(hash, 'wrong')).toBe(false)
  expect(after.needsRehash(hash, PASSWORD)).toBe(true)
})
