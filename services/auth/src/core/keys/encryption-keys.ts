// Keys that encrypt secrets in the database (ENCRYPTION_KEYS, ENCRYPTION_KEY). Their use: encryption.ts.

export interface EncryptionKey {
  /** null: the key without id, ENCRYPTION_KEY or, if that is unset, JWT_SECRET. */
  id: string | null
  secret: string | Uint8Array
}

/** Settings of createEncryption; of `keys` the first one encrypts, all decrypt. */
export interface EncryptionSettings {
  keys: readonly [EncryptionKey, ...EncryptionKey[]]
}

/** Entry of the list in place of the key without id. */
export const UNNAMED = 'ENCRYPTION_KEY'

/** Short, because each sealed text carries it. */
export const KEY_ID = /^[a-z0-9-]{1,16}$/

export const KEY_BYTES = 32

/** Parses `2026b:<key>,2026a:<key>`; an entry ENCRYPTION_KEY stands for the key without id. Errors quote no key. */
export function parseEncryptionKeys(text: string): (EncryptionKey | typeof UNNAMED)[] {
  const entries = text
    .split(',')
    .map((entry) => entry.trim())
    .map((entry, index) => (entry === UNNAMED ? UNNAMED : parseEntry(entry, index + 1)))
  const keys = entries.filter((entry) => entry !== UNNAMED)
  if (keys.length === 0) throw new Error('must name at least one key as id:key')
  if (new Set(keys.map(({ id }) => id)).size < keys.length) throw new Error('must not hold two keys with one id')
  const secrets = new Set(keys.map(({ secret }) => Buffer.from(secret).toString('hex')))
  if (secrets.size < keys.length) throw new Error('must not hold one key under two ids')
  if (entries.length > keys.length + 1) throw new Error(`must not name ${UNNAMED} twice`)
  return entries
}

function parseEntry(entry: string, position: number): EncryptionKey {
  const [id = '', encoded, ...more] = entry.split(':').map((part) => part.trim())
  if (encoded === undefined || more.length > 0) throw new Error(`must be id:key, id:key; entry ${position} is not`)
  if (!KEY_ID.test(id)) {
    throw new Error(`must have ids of 1 to 16 of a-z, 0-9 and the hyphen; that of entry ${position} is not`)
  }
  const secret = decode(encoded)
  if (secret?.length !== KEY_BYTES) {
    throw new Error(`must have keys of ${KEY_BYTES} bytes in base64 or ${KEY_BYTES * 2} hex digits; ${id} is not`)
  }
  return { id, secret }
}

/** Reads hex digits, base64 or base64url; undefined for any other text, of which Buffer.from would skip characters. */
function decode(text: string): Buffer | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex')
  const bytes = Buffer.from(text, 'base64')
  const spellings = [bytes.toString('base64'), bytes.toString('base64').replace(/=+$/, ''), bytes.toString('base64url')]
  return spellings.includes(text) ? bytes : undefined
}

/** Puts the key without id where the list names it, else last: it decrypts what it once encrypted. */
export function withUnnamed(
  listed: readonly (EncryptionKey | typeof UNNAMED)[],
  secret: string,
): EncryptionSettings['keys'] {
  const unnamed: EncryptionKey = { id: null, secret }
  const keys = listed.map((entry) => (entry === UNNAMED ? unnamed : entry))
  const [first = unnamed, ...others] = keys.includes(unnamed) ? keys : [...keys, unnamed]
  return [first, ...others]
}
