// All columns with encrypted values: status, rotation and the test that walks over them read this list. A new one needs
// a line here, `encryption.seal` and `encryption.open` (encryption.ts) where it is written and read, and a row in the
// test (sealed-columns.test.ts). Commands: flows/commands/encryption/.
import type { DB } from '../../db/tables.ts'

/** Uses of encryption keys; each has a key of its own, derived from the configured one. */
export type SealedPurpose =
  | 'second factor'
  | 'message'
  | 'sign-in attempt'
  | 'provider tokens'
  | 'unproven account'
  | 'client secret'
  | 'webhook'

type Table = keyof DB & string

export interface SealedColumn<Column extends string = string, Bound extends string = string> {
  table: Table
  column: Column
  /** Column with a unique index, by which rotation walks over the table. */
  key: Bound
  keyType: 'uuid' | 'bytea'
  /** Columns whose values are bound into the text: it opens in no other row. */
  boundTo: readonly Bound[]
  purpose: SealedPurpose
  /** Table that is bound, where a statement moves rows from there to here; the column's own otherwise. */
  movedFrom?: Table
}

function sealedColumn<T extends Table, Column extends keyof DB[T] & string, Bound extends keyof DB[T] & string>(
  table: T,
  column: Column,
  rest: Omit<SealedColumn<Column, NoInfer<Bound>>, 'table' | 'column' | 'boundTo'> & { boundTo: readonly Bound[] },
): SealedColumn<Column, Bound> {
  return { table, column, ...rest }
}

export const SEALED = {
  /** TOTP secret. Bound to the user, too: a factor that is given to another account is worth nothing. */
  factorSecret: sealedColumn('factors', 'sealed_secret', {
    ...{ key: 'id', keyType: 'uuid', boundTo: ['id', 'user_id'] },
    purpose: 'second factor',
  }),
  /** Address, link and code of a message on its way out. */
  message: sealedColumn('messages', 'sealed', {
    ...{ key: 'id', keyType: 'uuid', boundTo: ['id'] },
    purpose: 'message',
  }),
  /** Secrets of an attempt at a provider. */
  attempt: sealedColumn('flow_states', 'sealed', {
    ...{ key: 'id', keyType: 'uuid', boundTo: ['id'] },
    purpose: 'sign-in attempt',
  }),
  /** Tokens of a provider, until the application exchanges its code. */
  providerTokens: sealedColumn('auth_codes', 'provider_tokens', {
    ...{ key: 'code_hash', keyType: 'bytea', boundTo: ['code_hash'] },
    purpose: 'provider tokens',
  }),
  /** Account at a provider, until the proof of its address. */
  unprovenAccount: sealedColumn('one_time_tokens', 'external_account', {
    ...{ key: 'token_hash', keyType: 'bytea', boundTo: ['token_hash'] },
    purpose: 'unproven account',
  }),
  /** The same behind a link that was replaced and stays valid. */
  earlierUnprovenAccount: sealedColumn('earlier_links', 'external_account', {
    ...{ key: 'token_hash', keyType: 'bytea', boundTo: ['token_hash'], movedFrom: 'one_time_tokens' },
    purpose: 'unproven account',
  }),
  /** Client secret of a provider of the admin API. */
  clientSecret: sealedColumn('custom_providers', 'sealed_secret', {
    ...{ key: 'id', keyType: 'uuid', boundTo: ['id'] },
    purpose: 'client secret',
  }),
  /** Secrets that sign the events of a receiver. */
  webhookSecrets: sealedColumn('webhooks', 'sealed_secrets', {
    ...{ key: 'id', keyType: 'uuid', boundTo: ['id'] },
    purpose: 'webhook',
  }),
} as const

export const SEALED_COLUMNS: readonly SealedColumn[] = Object.values(SEALED)
