import type { Config } from '../../config.ts'
import { oauthError } from '../../oauth-errors.ts'
import { resourceFault } from './resources.ts'

const MAX_RESOURCES = 10

/** Checks the resources of a request (RFC 8707); they become `aud` of its tokens. Throws invalid_target. */
export function requestedResources({ oauthServer }: Pick<Config, 'oauthServer'>, given: readonly string[]): string[] {
  const resources = [...new Set(given.filter(Boolean))]
  if (resources.length > MAX_RESOURCES) throw refused(`at most ${MAX_RESOURCES} resources can be named`)
  for (const resource of resources) {
    const fault = resourceFault(resource)
    if (fault) throw refused(`resource ${fault}`)
    if (oauthServer.resources !== 'any' && !oauthServer.resources.includes(resource)) {
      throw refused(`unknown resource: ${resource.slice(0, 200)}`)
    }
  }
  return resources
}

const refused = (message: string) => oauthError('invalid_target', { message })
