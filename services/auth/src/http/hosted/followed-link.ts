// Cookie that names the last link of a mail that has signed a user in here. A second press finds its token used, and
// leads this user on. It opens nothing by itself.
import { createHash, createHmac } from 'node:crypto'
import { cookiesOf, setCookie } from '@services/common/pages/cookies'
import type { FastifyReply } from 'fastify'
import { deriveKey } from '../../core/keys/derive-key.ts'
import type { Deps } from '../../deps.ts'
import { PAGE_SECONDS } from './carried.ts'

type FollowDeps = Pick<Deps, 'config'>

/** Link of a mail by its name, and the user whom it signed in. */
interface FollowedLink {
  link: string
  userId: string
}

/** Names a link, as short as any other: addresses carry it. */
export const linkName = (token: string): string => createHash('sha256').update(token).digest('base64url')

export function rememberLink({ config }: FollowDeps, reply: FastifyReply, followed: FollowedLink): void {
  const { isSecure, name } = cookieOf(config)
  setCookie(reply, { name, value: macOf(config, followed), maxAge: PAGE_SECONDS, isSecure, sameSite: 'Lax' })
}

export function hasFollowed({ config }: FollowDeps, { request }: FastifyReply, followed: FollowedLink): boolean {
  const { name } = cookieOf(config)
  const expected = macOf(config, followed)
  return cookiesOf(request).some(([other, value]) => other === name && value === expected)
}

function cookieOf({ server }: Deps['config']) {
  const isSecure = server.externalUrl.startsWith('https:')
  return { isSecure, name: isSecure ? '__Host-auth-link' : 'auth-link' }
}

const macOf = ({ jwt }: Deps['config'], { link, userId }: FollowedLink) =>
  createHmac('sha256', deriveKey(jwt.secret, 'page')).update(`link ${userId} ${link}`).digest('base64url')
