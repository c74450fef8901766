// Encryption of secrets in the database. A text is `v2.<key id>.<base64>`, of which the id is empty for the key without
// one. The base64 begins with the check value of the key, which two keys of one id do not share. Table, column and row
// are bound into the text: moved to another row, it does not open. Columns: sealed-columns.ts.
// Keys: encryption-keys.ts. Tests: here, sealed-columns.test.ts, flows/commands/encryption/*.test.ts.
import type { KeyObject } from 'node:crypto'
import { seal, unseal } from '@services/common/seal'
import { deriveKey } from './derive-key.ts'
import { type EncryptionSettings, KEY_ID } from './encryption-keys.ts'
import type { SealedColumn } from './sealed-columns.ts'

/** Six bytes are eight characters of base64, without padding: the rest decodes by itself. */
const CHECK_BYTES = 6
export const CHECK_CHARACTERS = 8

const SEALED_TEXT = new RegExp(`^v2\\.([^.]*)\\.([^.]{${CHECK_CHARACTERS}})([^.]+)$`)

export type Cell = string | Buffer | null

/** Name of a key in its texts. */
export interface KeyName {
  /** null: the key without id. */
  id: string | null
  /** Derived from the key, in base64. */
  check: string
}

export interface Encryption {
  /** All keys, the one that encrypts first. */
  keys: readonly KeyName[]
  /** Start of every text of the key that encrypts. */
  prefix: string
  seal<Bound extends string>(
    column: SealedColumn<string, Bound>,
    row: Readonly<Record<Bound, Cell>>,
    value: unknown,
  ): string
  /**
   * Throws when the key is unknown, and when the text was changed or made for another row. The caller names the type.
   */
  open<Value, Column extends string, Bound extends string>(
    column: SealedColumn<Column, Bound>,
    row: Readonly<Record<Bound | Column, Cell>>,
  ): Value
}

export function createEncryption({ keys }: EncryptionSettings): Encryption {
  const named = keys.map(({ id, secret }) => ({ id, secret, check: checkOf(secret) }))
  const [writer = { id: null, check: '' }] = named
  const prefix = `v2.${writer.id ?? ''}.${writer.check}`
  const derived = new Map<string, KeyObject>()
  /** Derives a key once: that takes 20 µs, several times as long as a seal. */
  const keyFor = ({ id, check }: KeyName, { purpose }: SealedColumn): KeyObject => {
    const key = named.find((each) => each.id === id)
    if (!key) throw new Error(`sealed under the key ${shownKeyId(id)}, which AUTH_ENCRYPTION_KEYS does not have`)
    if (key.check !== check) throw new Error(`sealed under another ${id === null ? UNNAMED_KEY : `key ${id}`}`)
    const name = `${id ?? ''} ${purpose}`
    const known = derived.get(name) ?? deriveKey(key.secret, `sealed ${purpose}`)
    derived.set(name, known)
    return known
  }
  return {
    keys: named.map(({ id, check }) => ({ id, check })),
    prefix,
    seal: (column, row, value) => prefix + seal(keyFor(writer, column), value, contextOf(column, row)),
    open: (column, row) => {
      const [, id, check, text] = SEALED_TEXT.exec(String(row[column.column] ?? '')) ?? []
      if (id === undefined || check === undefined || text === undefined)
        throw new Error('not a sealed text: it names no key')
      const key = keyFor({ id: id || null, check }, column)
      try {
        return unseal(key, text, contextOf(column, row))
      } catch (cause) {
        throw new Error('changed, or moved from another row', { cause })
      }
    },
  }
}

const checkOf = (secret: string | Uint8Array): string =>
  deriveKey(secret, 'check').export().subarray(0, CHECK_BYTES).toString('base64')

/** Writes the row without ambiguity: no two rows of two columns have one text. */
const contextOf = <Bound extends string>(
  { table, movedFrom, column, boundTo }: SealedColumn<string, Bound>,
  row: Readonly<Record<Bound, Cell>>,
): string => JSON.stringify([movedFrom ?? table, column, ...boundTo.map((name) => cellText(row[name]))])

const cellText = (cell: Cell): string | null => (Buffer.isBuffer(cell) ? cell.toString('hex') : cell)

/** Settings of the key without id, for logs and people. */
export const UNNAMED_KEY = 'AUTH_ENCRYPTION_KEY, or AUTH_JWT_SECRET where that is unset'

/** Id for logs and people. The database may hold any text in its place, which is not repeated. */
export const shownKeyId = (id: string | null): string =>
  id === null ? 'without id' : KEY_ID.test(id) ? id : 'with a malformed id'
