import type { Config } from '../../../config.ts'
import type { Encryption } from '../../../core/keys/encryption.ts'
import type { KeyRows, SealedRowsWatch } from '../../../core/keys/sealed-rows.ts'

export interface KeysDeps {
  config: Pick<Config, 'jwt'>
  encryption: Pick<Encryption, 'keys'>
  sealedRows: Pick<SealedRowsWatch, 'figures' | 'countedAt'>
}

/** Lists keys by id, never their material. */
export function showKeys({ config, encryption, sealedRows }: KeysDeps) {
  const countedAt = sealedRows.countedAt()
  return {
    signing: signingKeys(config.jwt),
    access_token_lifetime: config.jwt.lifetimeSeconds,
    encryption: encryptionKeys(encryption, sealedRows.figures()),
    ...(countedAt && { counted_at: countedAt.toISOString() }),
  }
}

/** JWT_SECRET comes last: with JWT_KEYS it verifies the tokens that operators sign with it. */
function signingKeys({ keys = [] }: Config['jwt']) {
  const listed = keys.map(({ kid, alg, kty, key_ops: uses, iat }) => ({
    id: kid,
    algorithm: alg as string,
    state: uses.includes('sign') ? 'signs' : 'verifies',
    published: kty !== 'oct',
    ...(typeof iat === 'number' && { created: new Date(iat * 1000).toISOString() }),
  }))
  const secret = { id: null, algorithm: 'HS256', state: keys.length > 0 ? 'verifies' : 'signs', published: false }
  return [...listed, secret]
}

/** Month in an id of `keys generate`, such as 2026-11-x7kq. */
const GENERATED_ID = /^(20\d\d-(?:0[1-9]|1[0-2]))-[a-z2-9]{4}$/

function encryptionKeys({ keys }: Pick<Encryption, 'keys'>, figures: readonly KeyRows[] | undefined) {
  const rowsOf = (id: string | null, isKnown: boolean) => {
    const own = figures?.filter(({ key_id, known }) => key_id === id && known === isKnown)
    return own && { rows: Object.fromEntries(own.map(({ table, rows }) => [table, rows])) }
  }
  const created = (id: string | null) => {
    const [, month] = GENERATED_ID.exec(id ?? '') ?? []
    return month && { created: month }
  }
  const missing = [...new Set(figures?.filter(({ known }) => !known).map(({ key_id }) => key_id))]
  return [
    ...keys.map(({ id }, index) => ({
      ...{ id, algorithm: 'A256GCM', state: index === 0 ? 'encrypts' : 'decrypts' },
      ...created(id),
      ...rowsOf(id, true),
    })),
    ...missing.map((id) => ({
      ...{ id, algorithm: 'A256GCM', state: keys.some((key) => key.id === id) ? 'changed' : 'missing' },
      ...created(id),
      ...rowsOf(id, false),
    })),
  ]
}
