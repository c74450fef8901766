import { isPermitted, type RedirectRules } from '../redirects/allowed-targets.ts'
import { type Chain, invalidGrant } from './chains.ts'
import type { SignedMessage } from './signed-message.ts'

/**
 * Throws invalid_grant unless the message was signed for an application of this service, and now. A stranger's page can
 * let its visitors sign any URI. Ethereum wallets and `signIn` of Solana's compare the Domain with the page;
 * `signMessage` only shows the text.
 */
export function requireAcceptable(
  { title, validitySeconds }: Pick<Chain, 'title' | 'validitySeconds'>,
  { uri, domain, issuedAt, expiresAt, notBefore }: SignedMessage,
  rules: RedirectRules,
  now: Date,
): void {
  const signed = `Signed ${title} message`
  const { protocol, hostname, host } = new URL(uri)
  const isLocal = hostname === 'localhost'
  if (protocol !== 'https:' && !(isLocal && protocol === 'http:')) {
    throw invalidGrant(`${signed} is using URI which does not use HTTPS`)
  }
  if (!isPermitted(uri, rules)) {
    throw invalidGrant(`${signed} is using URI which is not allowed on this server, message was signed for another app`)
  }
  if (!isSameHost(domain, host, protocol) || !(isLocal || isPermitted(`https://${host}/`, rules))) {
    throw invalidGrant(
      `${signed} is using a Domain that does not match the one in URI which is not allowed on this server`,
    )
  }
  if (notBefore && notBefore > now) throw invalidGrant(`${signed} becomes valid in the future`)
  if (expiresAt && expiresAt <= now) throw invalidGrant(`${signed} is expired`)
  const ageSeconds = (now.getTime() - issuedAt.getTime()) / 1000
  if (ageSeconds > validitySeconds) throw invalidGrant(`${title} message was issued too long ago`)
  if (-ageSeconds > validitySeconds) throw invalidGrant(`${title} message was issued too far in the future`)
}

/** Compares as a browser does: without case and the scheme's own port. */
const isSameHost = (domain: string, host: string, protocol: string) =>
  URL.canParse(`${protocol}//${domain}/`) && new URL(`${protocol}//${domain}/`).host === host
