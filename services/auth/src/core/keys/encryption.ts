// Encryption of secrets in the database. A text is `v2.<key id>.<base64>`, of which the id is empty for the key without
// one. Table, column and row are bound into it: moved to another row, it does not open. Columns: sealed-columns.ts; keys:
// encryption-keys.ts. Tests: here, sealed-columns.test.ts, flows/commands/encryption/*.test.ts.
import type { KeyObject } from 'node:crypto'
import { seal, unseal } from '@services/common/seal'
import { deriveKey } from './derive-key.ts'
import { type EncryptionSettings, KEY_ID } from './encryption-keys.ts'
import type { SealedColumn } from './sealed-columns.ts'

const SEALED_TEXT = /^v2\.([^.]*)\.([^.]*)$/

export type Cell = string | Buffer | null

export interface Encryption {
  /** Ids of all keys, the one that encrypts first; null: the key without id. */
  keyIds: readonly (string | null)[]
  /** Start of every text of the key that encrypts. */
  prefix: string
  seal<Bound extends string>(
    column: SealedColumn<string, Bound>,
    row: Readonly<Record<Bound, Cell>>,
    value: unknown,
  ): string
  /** Throws when the key is unknown, and when the text was changed or made for another row. The caller names the type. */
  open<Value, Column extends string, Bound extends string>(
    column: SealedColumn<Column, Bound>,
    row: Readonly<Record<Bound | Column, Cell>>,
  ): Value
}

export function createEncryption({ keys }: EncryptionSettings): Encryption {
  const [writer] = keys
  const prefix = `v2.${writer.id ?? ''}.`
  const derived = new Map<string, KeyObject>()
  /** Derives a key once: that takes 20 µs, several times as long as a seal. */
  const keyFor = (id: string | null, { purpose }: SealedColumn): KeyObject => {
    const key = keys.find((each) => each.id === id)
    if (!key) throw new Error(`sealed under the key ${shownKeyId(id)}, which AUTH_ENCRYPTION_KEYS does not have`)
    const name = `${id ?? ''} ${purpose}`
    const known = derived.get(name) ?? deriveKey(key.secret, `sealed ${purpose}`)
    derived.set(name, known)
    return known
  }
  return {
    keyIds: keys.map(({ id }) => id),
    prefix,
    seal: (column, row, value) => prefix + seal(keyFor(writer.id, column), value, contextOf(column, row)),
    open: (column, row) => {
      const [, id, text] = SEALED_TEXT.exec(String(row[column.column] ?? '')) ?? []
      if (id === undefined || text === undefined) throw new Error('not a sealed text: it names no key')
      const key = keyFor(id || null, column)
      try {
        return unseal(key, text, contextOf(column, row))
      } catch (cause) {
        throw new Error('sealed under another AUTH_ENCRYPTION_KEY, or changed, or moved from another row', { cause })
      }
    },
  }
}

/** Writes the row without ambiguity: no two rows of two columns have one text. */
const contextOf = <Bound extends string>(
  { table, movedFrom, column, boundTo }: SealedColumn<string, Bound>,
  row: Readonly<Record<Bound, Cell>>,
): string => JSON.stringify([movedFrom ?? table, column, ...boundTo.map((name) => cellText(row[name]))])

const cellText = (cell: Cell): string | null => (Buffer.isBuffer(cell) ? cell.toString('hex') : cell)

/** Id for logs and people. The database may hold any text in its place, which is not repeated. */
export const shownKeyId = (id: string | null): string =>
  id === null ? 'without id' : KEY_ID.test(id) ? id : 'with a malformed id'
