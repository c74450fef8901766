import type { Config } from '../../config.ts'
import type { Deps } from '../../deps.ts'
import { takesPasskeys } from '../../http/hosted/passkey-offer.ts'

export interface ProviderWay {
  name: string
  label: string
}

/** Whether a page offers a way of its own: it is listed in HOSTED_PAGES_WAYS, or nothing is, and it is enabled. */
export function offers(config: Config, way: 'password' | 'code' | 'link' | 'passkey'): boolean {
  if (way === 'passkey') return takesPasskeys(config)
  const { pages, signup } = config
  if (pages.ways && !pages.ways.includes(way)) return false
  if (way === 'password') return signup.email || signup.phone
  return signup.email && signup.magicLinks ? true : way === 'code' && signup.phone
}

/** Whether a page takes new accounts by address and password. */
export const signsUp = (config: Config): boolean => !config.signup.disabled && offers(config, 'password')

/** Providers that a page offers, in the order of HOSTED_PAGES_WAYS. */
export async function offeredProviders(
  deps: Pick<Deps, 'config' | 'customProviders' | 'providers'>,
): Promise<ProviderWay[]> {
  const { ways } = deps.config.pages
  const custom = (await deps.customProviders.shown()).map(({ identifier, name }) => ({ name: identifier, label: name }))
  const configured = Object.entries(deps.providers.enabled())
    .filter(([, isUsable]) => isUsable)
    .map(([name]) => ({ name, label: labelOf(name) }))
  const all = [...configured, ...custom]
  return ways ? ways.flatMap((way) => all.filter(({ name }) => name === way)) : all
}

/** Spellings that are not the name with a capital. */
const LABELS: Record<string, string> = {
  ...{ azure: 'Microsoft', github: 'GitHub', gitlab: 'GitLab', linkedin: 'LinkedIn', linkedin_oidc: 'LinkedIn' },
  ...{ slack_oidc: 'Slack', vercel_marketplace: 'Vercel', workos: 'WorkOS' },
}

const labelOf = (name: string) => LABELS[name] ?? name.charAt(0).toUpperCase() + name.slice(1)
