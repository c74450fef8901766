// Passkeys of the pages: whether they are taken, and whether one is offered after a sign-in. The offer is for a user
// without a passkey, once in 30 days in a browser.
import { isStorable } from '@services/common/database/storable-json'
import { cookiesOf, setCookie } from '@services/common/pages/cookies'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../../config.ts'
import { listPasskeys } from '../../core/passkeys/passkeys.store.ts'
import type { AmrEntry } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'

export const PASSKEY_PATH = '/ui/passkey'

/**
 * Whether a credential is a passkey of the user, by the first press of two. A refusal carries its id to the next page:
 * the first press may end after the second.
 */
export const hasPasskey = async ({ db }: Pick<Deps, 'db'>, userId: string, credentialId: string | undefined) =>
  credentialId !== undefined &&
  (await listPasskeys(db, userId)).some(({ credential_id }) => credential_id === credentialId)

/** Reads the answer of a browser's authenticator, and its id; none of a text that no body of the API may hold. */
export function credentialIn(text = ''): { credential?: unknown; id?: string } {
  try {
    const credential: unknown = JSON.parse(text)
    if (!isStorable(credential)) return {}
    const { id } = (credential ?? {}) as { id?: unknown }
    return { credential, ...(typeof id === 'string' && { id }) }
  } catch {
    return {}
  }
}

const OFFERED_AGAIN_SECONDS = 30 * 86_400

/** The relying party must permit the pages' origin, or browsers refuse. */
export const takesPasskeys = ({ pages, passkeys, server }: Pick<Config, 'pages' | 'passkeys' | 'server'>): boolean =>
  passkeys.enabled &&
  (pages.ways?.includes('passkey') ?? true) &&
  passkeys.party.origins.includes(new URL(server.externalUrl).origin)

export function openPasskeyOffer({ config, db }: Pick<Deps, 'config' | 'db'>) {
  const isSecure = config.server.externalUrl.startsWith('https:')
  const name = isSecure ? '__Host-auth-passkey-offered' : 'auth-passkey-offered'
  return {
    async isDue(request: FastifyRequest, userId: string, amr: readonly AmrEntry[]): Promise<boolean> {
      if (!takesPasskeys(config) || amr.some(({ method }) => method === 'passkey')) return false
      if (cookiesOf(request).some(([other]) => other === name)) return false
      return (await listPasskeys(db, userId)).length === 0
    },
    note: (reply: FastifyReply): void =>
      setCookie(reply, { name, value: 'yes', maxAge: OFFERED_AGAIN_SECONDS, isSecure, sameSite: 'Lax' }),
  }
}
