import type { Transaction } from 'kysely'
import type { LinkingRule } from '../../config/external-providers.ts'
import type { Config } from '../../config.ts'
import type { DB } from '../../db/tables.ts'
import { linkingRulesOf } from '../custom-providers/custom-providers.store.ts'
import { listIdentityKeys } from './identities.store.ts'

/**
 * Whether an account under this rule may join a user by a verified address; `owner` has proven it, else it is free of
 * other identities. Groups link their providers with each other, and with no other way in. A provider that is gone may
 * have been in a group: its identity lets none join.
 */
export async function mayLink(
  config: Pick<Config, 'providers' | 'ownProviders'>,
  trx: Transaction<DB>,
  rule: LinkingRule,
  owner: string | undefined,
): Promise<boolean> {
  if (rule === 'never') return false
  if (owner === undefined) return true
  const names = (await listIdentityKeys(trx, owner)).map(({ provider }) => provider)
  const rules = { ...OWN_RULES, ...settingsRules(config), ...(await customRules(trx, names)) }
  const groups = names.filter((name) => Object.hasOwn(rules, name)).map((name) => groupOf(rules[name]))
  return names.length === 0 ? groupOf(rule) === undefined : groups.includes(groupOf(rule))
}

/** Identities of our own, which are ways in outside of groups. */
const OWN_RULES: Readonly<Record<string, LinkingRule>> = { email: 'verified', phone: 'verified', web3: 'never' }

const groupOf = (rule: LinkingRule | undefined) => (rule?.startsWith('group:') ? rule : undefined)

const settingsRules = ({ providers, ownProviders }: Pick<Config, 'providers' | 'ownProviders'>) =>
  Object.fromEntries(
    [...Object.entries(providers), ...Object.entries(ownProviders)].map(([name, { linking }]) => [name, linking]),
  )

async function customRules(trx: Transaction<DB>, names: readonly string[]): Promise<Record<string, LinkingRule>> {
  const custom = names.filter((name) => name.startsWith('custom:'))
  return custom.length === 0 ? {} : linkingRulesOf(trx, custom)
}
