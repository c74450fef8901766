// A security key in software: ES256, counter, no attestation. `spoil` bends what it answers, for answers no key would
// give.
import { createHash, createPrivateKey, createSign, generateKeyPairSync, randomBytes } from 'node:crypto'

interface Question {
  challenge: string
  rpId: string
  origin: string
}

interface Spoiled {
  origin?: string
  challenge?: string
  rpId?: string
  type?: string
  counter?: number
  flags?: number
  fmt?: string
  aaguid?: string
  /** Signed by the key itself, or by a certificate of its maker. */
  attestation?: 'self' | 'certificate'
}

/** CBOR of small values (RFC 8949), of which a key's answer consists. */
function head(major: number, value: number): Buffer {
  if (value < 24) return Buffer.from([(major << 5) | value])
  if (value < 256) return Buffer.from([(major << 5) | 24, value])
  return Buffer.from([(major << 5) | 25, value >> 8, value & 255])
}
const int = (value: number) => (value < 0 ? head(1, -1 - value) : head(0, value))
const text = (value: string) => Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
const bytes = (value: Buffer) => Buffer.concat([head(2, value.length), value])
const list = (items: Buffer[]) => Buffer.concat([head(4, items.length), ...items])
const map = (entries: [Buffer, Buffer][]) => Buffer.concat([head(5, entries.length), ...entries.flat()])

const sha256 = (value: string | Buffer) => createHash('sha256').update(value).digest()

export type SecurityKey = ReturnType<typeof createSecurityKey>

export function createSecurityKey(idBytes = 32) {
  const keyId = randomBytes(idBytes)
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  const coseKey = map([
    [int(1), int(2)],
    [int(3), int(-7)],
    [int(-1), int(1)],
    [int(-2), bytes(Buffer.from(x, 'base64url'))],
    [int(-3), bytes(Buffer.from(y, 'base64url'))],
  ])
  let uses = 0

  const authDataFor = ({ rpId }: Question, flags: number, spoil: Spoiled) => {
    const counter = Buffer.alloc(4)
    counter.writeUInt32BE(spoil.counter ?? uses)
    return Buffer.concat([sha256(spoil.rpId ?? rpId), Buffer.from([spoil.flags ?? flags]), counter])
  }
  const answer = <Response>(response: Response) => {
    const id = keyId.toString('base64url')
    return { id, rawId: id, type: 'public-key', response, clientExtensionResults: {} }
  }

  return {
    create(question: Question, spoil: Spoiled = {}) {
      const credential = Buffer.concat([
        Buffer.from((spoil.aaguid ?? NO_MODEL).replaceAll('-', ''), 'hex'),
        Buffer.from([keyId.length >> 8, keyId.length & 255]),
        keyId,
        coseKey,
      ])
      const authData = Buffer.concat([authDataFor(question, PRESENT_WITH_KEY, spoil), credential])
      const client = clientData('webauthn.create', question, spoil)
      const statement = () => {
        if (!spoil.attestation) return map([])
        const isSelf = spoil.attestation === 'self'
        const signed = createSign('sha256').update(authData).update(sha256(client))
        const sig = signed.sign(isSelf ? privateKey : MAKER.privateKey)
        const signature: [Buffer, Buffer][] = [
          [text('alg'), int(-7)],
          [text('sig'), bytes(sig)],
        ]
        return map(isSelf ? signature : [...signature, [text('x5c'), list([bytes(MAKER.certificate)])]])
      }
      const attestationObject = map([
        [text('fmt'), text(spoil.fmt ?? (spoil.attestation ? 'packed' : 'none'))],
        [text('attStmt'), statement()],
        [text('authData'), bytes(authData)],
      ])
      return answer({
        clientDataJSON: client.toString('base64url'),
        attestationObject: attestationObject.toString('base64url'),
        transports: ['usb'],
      })
    },
    /** `userHandle` is that of a discoverable key. */
    get(question: Question, spoil: Spoiled = {}, userHandle?: string) {
      uses++
      const authenticatorData = authDataFor(question, PRESENT, spoil)
      const client = clientData('webauthn.get', question, spoil)
      const signature = createSign('sha256').update(authenticatorData).update(sha256(client)).sign(privateKey)
      return answer({
        clientDataJSON: client.toString('base64url'),
        authenticatorData: authenticatorData.toString('base64url'),
        signature: signature.toString('base64url'),
        ...(userHandle !== undefined && { userHandle }),
      })
    },
  }
}

const NO_MODEL = '00000000-0000-0000-0000-000000000000'

/** Flags of WebAuthn 6.1: the user was present; and there is a new key in the data. */
const PRESENT = 0x01
const PRESENT_WITH_KEY = 0x41
/** Further flags: the user was verified; backups may hold the key, and one does. */
export const VERIFIED = 0x04
export const SYNCED = 0x08 | 0x10

const clientData = (type: string, { challenge, origin }: Question, spoil: Spoiled) =>
  Buffer.from(
    JSON.stringify({
      type: spoil.type ?? type,
      challenge: spoil.challenge ?? challenge,
      origin: spoil.origin ?? origin,
      crossOrigin: false,
    }),
  )

/**
 * A maker of keys that exists in these tests only, as WebAuthn 8.2.1 wants its certificate; valid for a hundred years.
 */
const MAKER = {
  privateKey: createPrivateKey({
    key: Buffer.from(
      'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgpLhC9hFhrw1MjrWbe10okZ5aqFtFYFMVfj6jVw9+HqehRANCAASnwJOurRLAty' +
        'AvKFf74FqIxAcYFhzoAkw9Vqj2Shjc3+ytMCzB6SO7GxgQMG9YKV+jlFMZnSn6KLzk/1gzdk/s',
      'base64',
    ),
    format: 'der',
    type: 'pkcs8',
  }),
  certificate: Buffer.from(
    'MIIB3jCCAYWgAwIBAgIUNN2mELIXge75kx1t0jv5H5FxHhowCgYIKoZIzj0EAwIwVjELMAkGA1UEBhMCREUxEDAOBgNVBAoMB0V4YW1wbGUxIj' +
      'AgBgNVBAsMGUF1dGhlbnRpY2F0b3IgQXR0ZXN0YXRpb24xETAPBgNVBAMMCFRlc3Qga2V5MCAXDTI2MTEyMTE3MTg0NloYDzIxMjYxMDI4MTcx' +
      'ODQ2WjBWMQswCQYDVQQGEwJERTEQMA4GA1UECgwHRXhhbXBsZTEiMCAGA1UECwwZQXV0aGVudGljYXRvciBBdHRlc3RhdGlvbjERMA8GA1UEAw' +
      'wIVGVzdCBrZXkwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASnwJOurRLAtyAvKFf74FqIxAcYFhzoAkw9Vqj2Shjc3+ytMCzB6SO7GxgQMG9Y' +
      'KV+jlFMZnSn6KLzk/1gzdk/soy8wLTAMBgNVHRMBAf8EAjAAMB0GA1UdDgQWBBSlob5LBJ+gYWdAIHIalW9Kky1VADAKBggqhkjOPQQDAgNHAD' +
      'BEAiB1yM9tuB/QD3BAp227nnE1+HTUoMjm8iT4mZNHT+SIfQIgNAlyZOp7sWaJ1NFBogCNgndw7WlIjfbBCOsr+Xc59JM=',
    'base64',
  ),
}
