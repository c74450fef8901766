import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, inject, onTestFinished, test } from 'vitest'
import { clientOf, type Running } from '../services/auth/test/auth-js/client.ts'
import { ethereumWallet } from '../services/auth/test/wallets.ts'
import { openGuide } from './testing/guide.ts'
import { openShell } from './testing/shell.ts'

const { settings } = inject('devServices')

test('a wallet signs in with the settings and code of the guide, and another one is linked to its account', async () => {
  const guide = openGuide('sign-in-with-a-wallet.md')
  const shell = await openShell(settings)
  onTestFinished(() => shell.close())
  await shell.write('wallet.env', guide.file('wallet.env'))
  const start = 'set -a; . ./wallet.env; exec npx -y pnpm@12 -C services/auth start'
  const url = await shell.start(start).says(/listening at (http:[^"]+)"/)
  const here = { 'https://auth.example.com': url }
  const enabled = JSON.parse((await shell.run(guide.take('/settings', here))).stdout)
  expect(enabled).toMatchObject({ web3_ethereum_enabled: true, web3_solana_enabled: true })

  await shell.write('wallet.js', guide.file('wallet.js', here))
  const { signInWithEthereum, linkEthereum } = await import(pathToFileURL(join(shell.folder, 'wallet.js')).href)
  const auth = clientOf({ url } as Running).client
  const own = ethereumWallet()
  const user = await signInWithEthereum(auth, own.provider)
  expect(user.identities[0].identity_data.custom_claims.address).toBe(own.address)

  const linked = await linkEthereum(auth, ethereumWallet().provider)
  expect(linked).toMatchObject({ id: user.id, identities: [{}, {}] })
  await expect(linkEthereum(auth, own.provider)).rejects.toThrow(/already/)
  expect(guide.untaken()).toEqual([])
})
