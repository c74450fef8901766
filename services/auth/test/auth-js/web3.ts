// Signing in with wallets, as the library does it with those of a browser.
import { perFile } from '@services/common/testing/per-file'
import type { SolanaWallet } from '@supabase/auth-js'
import { expect } from 'vitest'
import { APP, ethereumWallet, solanaWallet } from '../wallets.ts'
import { test as base, clientOf, type Running, startRunning } from './client.ts'

const test = base.extend<object & { chains: Running }>({
  chains: perFile(() =>
    startRunning({
      AUTH_EXTERNAL_WEB3_ETHEREUM_ENABLED: 'true',
      AUTH_EXTERNAL_WEB3_SOLANA_ENABLED: 'true',
      AUTH_WEB3_REQUIRE_NONCE: 'true',
    }),
  ),
})

const nonceOf = async ({ service }: Running): Promise<string> => (await service.get('/web3/nonce')).body.nonce

test('signInWithWeb3 signs in with a wallet of Ethereum, with and without its other fields', async ({ chains }) => {
  const { address, provider: wallet } = ethereumWallet()
  const { client } = clientOf(chains)
  const events: string[] = []
  client.onAuthStateChange((event) => void events.push(event))
  const now = chains.service.clock.now()
  const first = await client.signInWithWeb3({
    chain: 'ethereum',
    wallet,
    statement: 'Sign in to Acme.',
    options: { url: APP, signInWithEthereum: { nonce: await nonceOf(chains), issuedAt: now } },
  })
  expect(first.error).toBeNull()
  expect(first.data.user?.identities?.[0]?.id).toBe(`web3:ethereum:${address}`)
  await expect.poll(() => events).toContain('SIGNED_IN')
  const inOneHour = new Date(now.getTime() + 3_600_000)
  const second = await clientOf(chains).client.signInWithWeb3({
    chain: 'ethereum',
    wallet,
    options: {
      url: APP,
      signInWithEthereum: {
        ...{ nonce: await nonceOf(chains), issuedAt: now, expirationTime: inOneHour, notBefore: now },
        ...{ chainId: 137, requestId: '7', resources: ['https://site.example/terms'] },
      },
    },
  })
  expect([second.error, second.data.user?.id]).toEqual([null, first.data.user?.id])
  const { data } = await client.getUser()
  expect(data.user?.app_metadata).toMatchObject({ provider: 'web3' })
})

test('signInWithWeb3 gives the reason of a refusal', async ({ chains }) => {
  const { client } = clientOf(chains)
  const { provider: wallet } = ethereumWallet()
  const { error } = await client.signInWithWeb3({
    chain: 'ethereum',
    wallet,
    options: { url: 'https://evil.example/' },
  })
  expect(error).toMatchObject({
    status: 400,
    code: 'invalid_credentials',
    message:
      'Signed Ethereum message is using URI which is not allowed on this server, message was signed for another app',
  })
})

test.for(['signer', 'writer'] as const)(
  'signInWithWeb3 signs in with a Solana wallet: %s',
  async (kind, { chains }) => {
    const own = solanaWallet()
    const { client } = clientOf(chains)
    const signInWithSolana = {
      nonce: await nonceOf(chains),
      issuedAt: chains.service.clock.now().toISOString(),
      resources: ['https://site.example/terms'],
    }
    const wallet = own[kind] as unknown as SolanaWallet
    const options = { url: APP, signInWithSolana }
    const { data, error } = await client.signInWithWeb3({ chain: 'solana', wallet, statement: 'Sign in.', options })
    expect(error).toBeNull()
    expect(data.user?.identities?.[0]?.id).toBe(`web3:solana:${own.address}`)
  },
)
