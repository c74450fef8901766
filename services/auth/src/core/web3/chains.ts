// Sign-in with a wallet: a message of a fixed form that the user signed with the key of an address. This folder reads
// messages (signed-message.ts), checks signatures (ethereum.ts, solana.ts), judges whom a message was signed for and
// when (require-acceptable.ts), and makes it usable once (used-messages.store.ts). The grant:
// flows/token/web3-grant.ts.
import type { Config } from '../../config.ts'
import { apiError } from '../../errors.ts'
import type { SignatureScheme } from './signature-scheme.ts'
import { type ChainName, TITLES } from './signed-message.ts'

export const CHAINS = Object.keys(TITLES) as ChainName[]

export interface Chain extends SignatureScheme {
  name: ChainName
  title: string
  validitySeconds: number
}

export type Chains = Partial<Record<ChainName, Chain>>

/** Loads the signature schemes of the enabled chains; the library of curves takes memory that others keep. */
export async function openChains({ ethereum, solana }: Config['web3']): Promise<Chains> {
  const chains: Chains = {}
  if (ethereum.enabled) {
    const { ethereumSignatures } = await import('./ethereum.ts')
    chains.ethereum = { ...ethereumSignatures, ...ethereum, name: 'ethereum', title: TITLES.ethereum }
  }
  if (solana.enabled) {
    const { solanaSignatures } = await import('./solana.ts')
    chains.solana = { ...solanaSignatures, ...solana, name: 'solana', title: TITLES.solana }
  }
  return chains
}

/** Throws web3_provider_disabled while no chain is enabled. */
export function requireChains(chains: Chains): void {
  if (Object.keys(chains).length === 0) throw apiError('web3_provider_disabled')
}

export function requireChain(chains: Chains, given: string): Chain {
  requireChains(chains)
  const name = CHAINS.find((known) => known === given)
  if (!name) throw apiError('web3_unsupported_chain')
  const chain = chains[name]
  if (chain) return chain
  throw apiError('web3_provider_disabled', { message: `${TITLES[name]} Web3 provider is disabled` })
}

/** Refusal of a readable message; OAuth clients read `error` and `error_description`. */
export const invalidGrant = (description: string) =>
  apiError('invalid_credentials', {
    message: description,
    details: { error: 'invalid_grant', error_description: description },
  })
