import { isDeepStrictEqual } from 'node:util'
import type { Egress } from '@services/common/egress/egress'
import type { Kysely } from 'kysely'
import type { Static } from 'typebox'
import { checkAddresses, startDeadline } from '../../../adapters/described-providers/check-address.ts'
import { issuerOf } from '../../../adapters/described-providers/custom-provider.ts'
import { readDiscovery } from '../../../adapters/described-providers/discovery.ts'
import type { Config } from '../../../config.ts'
import { type Actor, type AuditDeps, type AuditLog, audit } from '../../../core/audit/audit.ts'
import {
  type CustomProviderChange,
  changeCustomProvider,
  countCustomProviders,
  deleteCustomProvider,
  findCustomProvider,
  insertCustomProvider,
  lockCustomProviders,
} from '../../../core/custom-providers/custom-providers.store.ts'
import { isNameOfOtherIssuer } from '../../../core/identities/identities.store.ts'
import type { Encryption } from '../../../core/keys/encryption.ts'
import { SEALED } from '../../../core/keys/sealed-columns.ts'
import type { CustomProvider, DB } from '../../../db/tables.ts'
import { apiError } from '../../../errors.ts'
import {
  addressesIn,
  discoveryOf,
  givenFields,
  type NewProvider,
  type ProviderChange,
  type ProviderFields,
  readChange,
  readNewProvider,
} from './provider-fields.ts'

interface Deps extends AuditDeps {
  config: Pick<Config, 'auditInDatabase' | 'customProviders' | 'ownProviders'>
  db: Kysely<DB>
  egress: Egress
  encryption: Encryption
  newId: () => string
}

/** Limit of all that a change asks of others, over all attempts; API_MAX_REQUEST_DURATION is 10 s. */
const ASKED_WITHIN_MS = 8_000
const DISCOVERY_WITHIN_MS = 6_000

/** Attempts of a change that meets other changes of the same provider. */
const ATTEMPTS = 3

/**
 * Adds a provider. Throws in the order of contract/auth-custom-providers.md 3; nothing is stored before its last check.
 */
export async function createCustomProvider(
  deps: Deps,
  log: AuditLog,
  actor: Actor,
  input: Static<typeof NewProvider>,
): Promise<CustomProvider> {
  const { client_secret: secret, has_secret: _, ...fields } = readNewProvider(input)
  const left = startDeadline(ASKED_WITHIN_MS)
  await requireRoom(deps, deps.db)
  await checkAddresses(deps.egress, addressesIn({ ...fields, has_secret: true }), left())
  await requireFree(deps, fields)
  const discovered = await discover(deps, { ...fields, has_secret: true }, left())
  const id = deps.newId()
  const now = deps.now()
  const row: CustomProvider = {
    ...fields,
    ...discovered,
    id,
    sealed_secret: secret ? deps.encryption.seal(SEALED.clientSecret, { id }, secret) : null,
    version: 1,
    created_at: now,
    updated_at: now,
  }
  await deps.db.transaction().execute(async (trx) => {
    await lockCustomProviders(trx)
    await requireRoom(deps, trx)
    if (!(await insertCustomProvider(trx, row))) throw taken()
    const given = givenFields(row.provider_type, input)
    const traits = { provider: row.identifier, provider_type: row.provider_type, fields: given }
    await audit(deps, trx, log, { action: 'custom_provider_created', actor, traits })
  })
  return row
}

/**
 * Changes the given fields, and writes no others: a rotation may move the sealed secret meanwhile. A concurrent change
 * makes it start again, so that none is lost.
 */
export async function updateCustomProvider(
  deps: Deps,
  log: AuditLog,
  actor: Actor,
  { identifier, input }: { identifier: string; input: Static<typeof ProviderChange> },
): Promise<CustomProvider> {
  const left = startDeadline(ASKED_WITHIN_MS)
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const before = (await findCustomProvider(deps.db, identifier)) ?? noSuchProvider()
    const { fields, given } = readChange(before, input)
    const changed = given.filter((name) => isChanged(before, fields, name))
    if (changed.length === 0) return before
    const isMoved = changed.includes('issuer') || changed.includes('discovery_url')
    const known = addressesIn({ ...before, has_secret: true }).map(([, address]) => address)
    await checkAddresses(
      deps.egress,
      addressesIn(fields).filter(([, address]) => isMoved || !known.includes(address)),
      left(),
    )
    const discovered = isMoved ? await discover(deps, fields, left()) : {}
    const { client_secret: secret, ...columns } = pick(fields, changed)
    const sealed = secret ? deps.encryption.seal(SEALED.clientSecret, before, secret) : null
    const change: CustomProviderChange = {
      ...columns,
      ...discovered,
      ...(secret !== undefined && { sealed_secret: sealed }),
      updated_at: deps.now(),
    }
    const saved = await deps.db.transaction().execute(async (trx) => {
      const after = await changeCustomProvider(trx, before, change)
      const traits = { provider: identifier, provider_type: before.provider_type, fields: changed }
      if (after) await audit(deps, trx, log, { action: 'custom_provider_updated', actor, traits })
      return after
    })
    if (saved) return saved
  }
  throw apiError('conflict', { message: 'The provider is being changed by others, try again' })
}

/** Reports whether a column would change. A given secret always does, as it is not compared with the sealed one. */
function isChanged(before: CustomProvider, fields: ProviderFields, name: keyof ProviderFields): boolean {
  if (name === 'client_secret') return fields.client_secret !== null || before.sealed_secret !== null
  return !isDeepStrictEqual(fields[name], before[name as keyof CustomProvider])
}

const pick = <Fields extends object, Name extends keyof Fields>(fields: Fields, names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, fields[name]])) as Partial<Pick<Fields, Name>>

/** Deletes a provider. Its users and identities stay; sign-ins under way end. */
export async function removeCustomProvider(deps: Deps, log: AuditLog, actor: Actor, identifier: string): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    const deleted = (await deleteCustomProvider(trx, identifier)) ?? noSuchProvider()
    const traits = { provider: identifier, provider_type: deleted.provider_type }
    await audit(deps, trx, log, { action: 'custom_provider_deleted', actor, traits })
  })
}

export function noSuchProvider(): never {
  throw apiError('custom_provider_not_found')
}

const taken = () =>
  apiError('conflict', { status: 400, message: 'A custom OAuth provider with this identifier already exists' })

async function requireRoom({ config }: Deps, db: Kysely<DB>): Promise<void> {
  const { max } = config.customProviders
  if (max > 0 && (await countCustomProviders(db)) >= max) throw apiError('over_custom_provider_quota')
}

/**
 * Providers by settings answer to `custom:<name>` too. Accounts of a deleted provider are found by name and id: at
 * another issuer the same id is another person.
 */
async function requireFree({ config, db }: Deps, fields: Omit<ProviderFields, 'has_secret'>): Promise<void> {
  const { identifier } = fields
  if (Object.hasOwn(config.ownProviders, identifier.slice('custom:'.length))) throw taken()
  if (await findCustomProvider(db, identifier)) throw taken()
  if (await isNameOfOtherIssuer(db, identifier, issuerOf(fields))) {
    throw apiError('conflict', { status: 400, message: 'Users have accounts of this identifier at another issuer' })
  }
}

/** Fetches the description of an OpenID provider; its text says what is wrong with it. */
async function discover({ egress, now }: Deps, fields: ProviderFields, leftMs: number) {
  if (fields.provider_type !== 'oidc') return { discovery_document: null, discovered_at: null }
  try {
    const found = await readDiscovery(egress, {
      ...discoveryOf(fields),
      withinMs: Math.min(DISCOVERY_WITHIN_MS, leftMs),
    })
    return { discovery_document: { ...found }, discovered_at: now() }
  } catch (error) {
    throw apiError('validation_failed', { message: (error as Error).message })
  }
}
