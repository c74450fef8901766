import { type Static, Type } from 'typebox'
import { cleanAccount } from '../../adapters/oauth/clean-account.ts'
import { MAX_WEB3_VALIDITY_HOURS } from '../../config/external.ts'
import { type AuditLog, pendingAudit } from '../../core/audit/audit.ts'
import { signInExternally } from '../../core/identities/external-sign-in.ts'
import type { LiveCaller } from '../../core/sessions/caller.ts'
import type { SessionBody } from '../../core/sessions/issue-tokens.ts'
import { type Client, startSession } from '../../core/sessions/start-session.ts'
import type { MailContext } from '../../core/verification-messages/link-mail.ts'
import { CHAINS, type Chain, invalidGrant, requireChain } from '../../core/web3/chains.ts'
import { findSpelling } from '../../core/web3/known-account.store.ts'
import { nonceExpiry } from '../../core/web3/nonce.ts'
import { requireAcceptable } from '../../core/web3/require-acceptable.ts'
import { readMessage, requireLength, type SignedMessage } from '../../core/web3/signed-message.ts'
import { markUsed, type OnceOnly } from '../../core/web3/used-messages.store.ts'
import type { Deps } from '../../deps.ts'
import { choiceOf, Field } from '../../http/bodies/shapes.ts'

export const Web3Fields = Type.Object({
  chain: Type.Optional(choiceOf(CHAINS, { title: 'WalletChain' })),
  message: Type.Optional(Field),
  signature: Type.Optional(Field),
})

interface Web3GrantInput extends Static<typeof Web3Fields> {
  linkingCaller: LiveCaller | undefined
  audience: string
  context: MailContext
  client: Client
}

/** Wallets link by request only, and have no address. */
const PROVIDER = { name: 'web3', settings: { linking: 'never', emailOptional: true } } as const

/** Longest statement, as JSON, that the account keeps: a longer one would push out all of `custom_claims`. */
const MAX_STATEMENT_BYTES = 1000

/** Signs in with a message that a wallet signed (contract/auth-external.md 2.8). */
export async function signInWithWeb3(deps: Deps, log: AuditLog, input: Web3GrantInput): Promise<SessionBody> {
  const { message: text = '', signature: signatureText = '', linkingCaller, audience, context, client } = input
  const chain = requireChain(deps.web3, input.chain ?? '')
  requireLength(text)
  const signature = chain.readSignature(signatureText)
  const message = readMessage(text, chain.name)
  if (!chain.isSigned(message, signature)) throw invalidGrant('Signature does not match address in message')
  const { siteUrl, redirectAllowList: allowList } = deps.config
  requireAcceptable(chain, message, { siteUrl, allowList }, deps.now())
  const uses = usesOf(deps, chain, message, text)
  const shown = {
    provider: PROVIDER,
    account: await accountOf(deps, chain, message),
    audience: linkingCaller?.user.aud ?? audience,
    context,
    linking: linkingCaller ? { userId: linkingCaller.user.id, sessionId: linkingCaller.session.id } : null,
    inviteTokenHash: null,
    attemptId: null,
  }
  return signInExternally(deps, log, shown, async (asking, trx, user, identityId) => {
    if (!(await markUsed(trx, uses))) throw invalidGrant('message was already used')
    const traits = { provider: 'web3', chain: chain.name, network: message.chainId, domain: message.domain }
    const personalTraits = { address: addressOf(chain, message), uri: message.uri }
    const audited = pendingAudit(deps, log, { action: 'login', actor: user, traits, personalTraits })
    return startSession(asking, trx, user, 'web3', client, audited, { identityId })
  })
}

/** Returns all that this sign-in uses up, each until its time refuses it under any settings. */
function usesOf(deps: Deps, chain: Chain, message: SignedMessage, text: string): OnceOnly[] {
  const lastAccepted = message.issuedAt.getTime() + MAX_WEB3_VALIDITY_HOURS * 3_600_000
  const end = Math.min(lastAccepted, message.expiresAt?.getTime() ?? lastAccepted)
  const use = { what: [chain.name, addressOf(chain, message), text], expiresAt: new Date(end) }
  if (!deps.config.web3.requiresNonce) return [use]
  const expiresAt = nonceExpiry(deps, message.nonce)
  if (!expiresAt) {
    throw invalidGrant(`Signed ${chain.title} message has no nonce of this server, or an expired one`)
  }
  return [use, { what: ['nonce', message.nonce], expiresAt }]
}

async function accountOf({ db }: Deps, chain: Chain, message: SignedMessage) {
  const { domain, statement, chainId: network } = message
  const address = addressOf(chain, message)
  const account = `web3:${chain.name}:${address}`
  const sub = chain.name === 'ethereum' ? ((await findSpelling(db, account)) ?? account) : account
  const isKept = Buffer.byteLength(JSON.stringify(statement)) <= MAX_STATEMENT_BYTES
  const custom_claims = { address, chain: chain.name, network, domain, statement: isKept ? statement : '' }
  return cleanAccount({ sub, emails: [], claims: { custom_claims } })
}

/** Address in the one spelling that counts: capitals of Ethereum's are a checksum, those of Solana's are not. */
const addressOf = ({ name }: Chain, { address }: SignedMessage) =>
  name === 'ethereum' ? address.toLowerCase() : address
