// Rate of sign-ins with a passkey: a challenge, the answer of a key in software, and the session. Alone:
// `node bench/passkeys.ts`, on an embedded PostgreSQL and without a row in results/.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { createSecurityKey } from '../test/webauthn/security-key.ts'
import { openConnection, type Send } from './http-client.ts'
import { createUsers, runFor, startService } from './load.ts'

const ORIGIN = 'http://localhost:3000'
const RP_ID = 'localhost'

const SETTINGS = {
  AUTH_PASSKEY_ENABLED: 'true',
  AUTH_WEBAUTHN_RP_ID: RP_ID,
  AUTH_WEBAUTHN_RP_DISPLAY_NAME: 'Bench',
  AUTH_WEBAUTHN_RP_ORIGINS: ORIGIN,
}

interface Challenge {
  challenge_id: string
  options: { challenge: string }
}

/** Returns the sign-ins a second of as many users as loops. */
export async function measurePasskeys(databaseUrl: string, seconds: number, concurrency: number): Promise<number> {
  const service = await startService(databaseUrl, SETTINGS)
  try {
    const users = await createUsers(service.base, concurrency, 'passkey')
    const keys = await Promise.all(
      users.map(async ({ id, accessToken }) => {
        const send = openConnection(service.base)
        const key = createSecurityKey()
        const headers = `authorization: Bearer ${accessToken}\r\n`
        const begun = await post<Challenge>(send, '/passkeys/registration/options', {}, headers)
        const credential = key.create(questionOf(begun))
        await post(send, '/passkeys/registration/verify', { challenge_id: begun.challenge_id, credential }, headers)
        return { send, key, handle: Buffer.from(id).toString('base64url') }
      }),
    )
    const signIn = async (loop: number) => {
      const { send, key, handle } = keys[loop] as (typeof keys)[number]
      const asked = await post<Challenge>(send, '/passkeys/authentication/options', {})
      const credential = key.get(questionOf(asked), {}, handle)
      await post(send, '/passkeys/authentication/verify', { challenge_id: asked.challenge_id, credential })
    }
    await runFor(seconds, concurrency, signIn)
    return (await runFor(seconds, concurrency, signIn)).rate
  } finally {
    await service.stop()
  }
}

const questionOf = ({ options }: Challenge) => ({ challenge: options.challenge, rpId: RP_ID, origin: ORIGIN })

async function post<Body>(send: Send, path: string, json: object, headers = ''): Promise<Body> {
  const { status, body } = await send({ method: 'POST', path, body: JSON.stringify(json), headers })
  if (status !== 200) throw new Error(`POST ${path}: ${status} ${body}`)
  return JSON.parse(body) as Body
}

if (import.meta.main) {
  const dataDir = await mkdtemp(join(tmpdir(), 'bench-postgres-'))
  const postgres = await startEmbeddedPostgres({ dataDir, database: 'bench' })
  try {
    console.log(`${Math.round(await measurePasskeys(postgres.url, 5, 16))} passkey sign-ins a second`)
  } finally {
    await postgres.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}
