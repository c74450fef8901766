import { onTestFinished, vi } from 'vitest'
import { createSecurityKey } from '../webauthn/security-key.ts'

type Asked = { publicKey: { challenge: ArrayBuffer; rp?: { id: string }; rpId?: string; user?: { id: ArrayBuffer } } }

type AskedAsJson = { challenge: string; user: { id: string } }

const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, 'base64url')).buffer
const base64url = (bytes: ArrayBuffer) => Buffer.from(bytes).toString('base64url')

/** Browser API of the library, with a new key in it, until the end of the test. The key remembers its user. */
export function browserWithKey(origin: string): void {
  const key = createSecurityKey()
  let handle: string | undefined
  const Credential = Object.assign(class {}, {
    parseCreationOptionsFromJSON: ({ challenge, user, ...others }: AskedAsJson) => ({
      ...others,
      challenge: bytesOf(challenge),
      user: { ...user, id: bytesOf(user.id) },
    }),
  })
  const credentialOf = (answer: object) => Object.assign(new Credential(), { type: 'public-key', toJSON: () => answer })
  const credentials = {
    async create({ publicKey: { challenge, rp, user } }: Asked) {
      handle = user && base64url(user.id)
      return credentialOf(key.create({ challenge: base64url(challenge), rpId: rp?.id ?? '', origin }))
    },
    async get({ publicKey: { challenge, rpId = '' } }: Asked) {
      return credentialOf(key.get({ challenge: base64url(challenge), rpId, origin }, {}, handle))
    },
  }
  vi.stubGlobal('PublicKeyCredential', Credential)
  vi.stubGlobal('document', {})
  vi.stubGlobal('window', { location: new URL(origin), PublicKeyCredential: Credential })
  vi.stubGlobal('navigator', { credentials })
  onTestFinished(() => void vi.unstubAllGlobals())
}
