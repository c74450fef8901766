import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { startMailbox } from '@services/common/testing/mailbox'
import { programOf } from '@services/common/testing/run/program'
import { expect } from 'vitest'
import { processEnvironment } from './process-environment.ts'
import { createDatabase } from './service.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const LISTENING = /Server listening at (http:[^"]+)"/

/** Processes of the service with these settings; `end` kills those that still run. */
export function openProcesses(common: Record<string, string>) {
  const children: ChildProcess[] = []

  function start(args: string[], settings: Record<string, string | undefined> = {}) {
    const child = spawn(process.execPath, args, { cwd: root, env: processEnvironment({ ...common, ...settings }) })
    children.push(child)
    let output = ''
    const collect = (chunk: Buffer) => {
      output += chunk
    }
    child.stdout.on('data', collect)
    child.stderr.on('data', collect)
    const until = (pattern: RegExp) => expect.poll(() => output.match(pattern)?.[1]).toBeTruthy()
    return { child, exit: once(child, 'exit'), output: () => output, until }
  }

  return {
    start,
    /** `pnpm start`, once it listens. */
    async serve(settings: Record<string, string | undefined> = {}) {
      const service = start([programOf('auth', 'main')], settings)
      await service.until(LISTENING)
      return { ...service, base: LISTENING.exec(service.output())?.[1] as string }
    },
    async end() {
      for (const child of children.splice(0)) {
        if (child.exitCode === null && child.signalCode === null) {
          child.kill('SIGKILL')
          await once(child, 'exit')
        }
      }
    },
  }
}

export const signUp = (base: string, email: string) =>
  fetch(`${base}/signup`, { method: 'POST', body: JSON.stringify({ email, password: 'correct horse' }) })

/** A database and a mail server, and processes of the service on them; `end` ends all. */
export async function openStage() {
  const [database, mailbox] = await Promise.all([createDatabase(), startMailbox()])
  const processes = openProcesses({ AUTH_DATABASE_URL: database.url, AUTH_SMTP_PORT: String(mailbox.port) })
  return {
    ...processes,
    database,
    mailbox,
    async end() {
      await processes.end()
      await mailbox.close()
      await database.drop()
    },
  }
}
