import pg from 'pg'
import { expect, onTestFinished } from 'vitest'
import { eventually } from '../test/service-process.ts'

/** One step of a transaction: a change of rows, or the commit of a transaction that has made it. */
export interface Step {
  table: string
  on: 'insert' | 'update' | 'delete'
  /** Condition on `new` or `old`; every row if absent. */
  when?: string
  at?: 'commit'
}

export interface HeldChange {
  /** Resolves once a process has come to the step and waits there. */
  hasBegun(): Promise<void>
  /** Ends the sessions that wait, as the server does with those of a killed process: their transactions are undone. */
  undo(): Promise<void>
  /** Lets the sessions that wait continue: a commit that a killed process has sent takes place. */
  letPass(): Promise<void>
}

/** Key of the advisory lock; one step is held at a time. */
const KEY = 25_25

/** Makes the database hold each process that comes to the step, until the test decides how the step ends. */
export async function holdChange(url: string, { table, on, when, at }: Step): Promise<HeldChange> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const condition = when ? `when (${when})` : ''
  const [kind, deferral] = at ? ['constraint trigger', 'deferrable initially deferred'] : ['trigger', '']
  await client.query(`select pg_advisory_lock(${KEY})`)
  await client.query(`create function held_change() returns trigger language plpgsql as
    'begin perform pg_advisory_xact_lock(${KEY}); return null; end'`)
  await client.query(`create ${kind} held_change after ${on} on ${table} ${deferral}
    for each row ${condition} execute function held_change()`)
  const waiting = `from pg_locks where locktype = 'advisory' and objid = ${KEY} and not granted`
  const countWaiting = async () => (await client.query(`select ${waiting}`)).rowCount
  let isEnded = false
  const end = async () => {
    if (isEnded) return
    isEnded = true
    await client.query(`drop function if exists held_change cascade`)
    await client.end()
  }
  const undo = async () => {
    if (!isEnded) await client.query(`select pg_terminate_backend(pid) ${waiting}`)
    await end()
  }
  onTestFinished(undo)
  return {
    hasBegun: () => eventually(countWaiting, 1),
    undo: async () => {
      await expect(countWaiting()).resolves.toBe(1)
      await undo()
    },
    letPass: async () => {
      await expect(countWaiting()).resolves.toBe(1)
      await client.query(`select pg_advisory_unlock(${KEY})`)
      await end()
    },
  }
}
