import { type KeyObject, randomBytes, randomUUID, randomUUIDv7 } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { type DatabaseOptions, openDatabase, tablePrefix, waitForDatabase } from '@services/common/database'
import type { Logger } from '@services/common/logger'
import { type MigrateOptions, migrate, onMigrationConnection } from '@services/common/migrate'
import { observeService } from '@services/common/observe-service'
import { openQueue, type Queue } from '@services/common/queue'
import { inOrder } from '@services/common/shutdown'
import { together } from '@services/common/together'
import type { Kysely } from 'kysely'
import type pg from 'pg'
import { createProviders, type Providers } from './adapters/providers/index.ts'
import type { Config } from './config.ts'
import { deriveKey } from './core/keys/derive-key.ts'
import { importSigningKeys, type SigningKeys } from './core/keys/signing-keys.ts'
import { createSmsGuards, type SmsGuards } from './core/limits/sms-guards.ts'
import type { RandomBytes } from './core/one-time-tokens/one-time-token.ts'
import { randomDelayMs } from './core/outbox/job-delay.ts'
import { MESSAGE_QUEUES } from './core/outbox/outbox.ts'
import { createPasswords, type Passwords } from './core/passwords/hash-password.ts'
import { createLeakedPasswords, type LeakedPasswords } from './core/passwords/leaked-passwords.ts'
import { type FindCaller, findCallers, type NamedCaller } from './core/sessions/find-callers.store.ts'
import { createRotateSession, type RotateSession } from './core/sessions/rotate-session.ts'
import { MESSAGE_REQUEST_QUEUE } from './core/verification-messages/message-request.ts'
import { followDatabaseClock } from './db/database-clock.ts'
import { type DB, TABLES } from './db/tables.ts'
import { type Captcha, createCaptcha } from './http/captcha.ts'
import { createLimits, type Limits } from './http/rate-limit.ts'
import { startCounters } from './metrics.ts'

/** Everything that routes and flows need, as plain values; core/ takes only the parts it uses. */
export interface Deps {
  config: Config
  log: Logger
  db: Kysely<DB>
  pool: pg.Pool
  queue: Queue
  passwords: Passwords
  leakedPasswords: LeakedPasswords
  keys: SigningKeys
  limits: Limits
  smsGuards: SmsGuards
  captcha: Captcha
  refreshTokenKey: KeyObject
  codeKey: KeyObject
  outboxKey: KeyObject
  /** Encrypts long-lived secrets: those of providers and second factors. */
  storageKey: KeyObject
  /** Authenticates attempts at providers: the browser's cookie, and the state it carries before one begins. */
  attemptKey: KeyObject
  providers: Providers
  findCaller: FindCaller
  rotateSession: RotateSession
  now: () => Date
  newId: () => string
  /** UUIDv7, for rows of sign-ins and refreshes: their index grows at its end, not at a random page per row. */
  newRowId: () => string
  random: RandomBytes
  /** Delay of the next job (core/outbox/job-delay.ts). */
  delayMs: () => number
  /** True once the process has been asked to stop. */
  isStopping: () => boolean
}

/** Overrides: the running service sets `isStopping`, tests the clock, randomness and time limits of the database. */
export type Overrides = Partial<Pick<Deps, 'now' | 'newId' | 'random' | 'delayMs' | 'isStopping'>> &
  Pick<DatabaseOptions, 'connectWithinMs' | 'statementWithinMs'> & {
    /** Machine clock, corrected by the database's; `now` is used uncorrected. */
    machineNow?: () => Date
  }

/** Callers looked up by one statement. */
const MOST_CALLERS = 32

/** Share of a request's time spent waiting for a password hash; the rest is for the hash and the work after it. */
const HASH_WAIT_SHARE = 0.5

/** Runs `work` on a migration connection, whose statements may take longer than any request. */
export const withMigrations = <Result>(
  { database }: Config,
  log: Logger,
  work: (migrations: MigrateOptions) => Promise<Result>,
): Promise<Result> =>
  onMigrationConnection(
    { ...database, applicationName: 'auth migrate', log, tables: TABLES },
    fileURLToPath(new URL('../migrations', import.meta.url)),
    work,
  )

/** Migrates our tables and the queue's. */
export async function migrateAll(config: Config, log: Logger): Promise<void> {
  await withMigrations(config, log, (migrations) => migrate(migrations, log))
  const queue = await openAuthQueue(config, log, { migrate: true, supervise: false })
  await queue.stop(1_000)
}

const openAuthQueue = ({ database }: Config, log: Logger, how: { migrate: boolean; supervise: boolean }) =>
  openQueue({
    url: database.url,
    schema: `${tablePrefix(database.namespace)}auth_queue`,
    applicationName: 'auth',
    queues: [...Object.values(MESSAGE_QUEUES), MESSAGE_REQUEST_QUEUE],
    log,
    ...how,
  })

/** Connects, migrates if configured, and opens the queue. `close` undoes all of it in reverse order. */
export async function openDeps(
  config: Config,
  log: Logger,
  { connectWithinMs, statementWithinMs, machineNow, ...overrides }: Overrides = {},
): Promise<Deps & { close(): Promise<void> }> {
  const { database } = config
  const patience = { connectWithinMs, statementWithinMs }
  const { db, pool, close } = openDatabase<DB>({
    ...database,
    ...patience,
    applicationName: 'auth',
    log,
    tables: TABLES,
    isTraced: config.telemetry.tracing,
  })
  try {
    await waitForDatabase(pool, log)
    if (database.migrateOnStart) await migrateAll(config, log)
    const queue = await openAuthQueue(config, log, { migrate: false, supervise: config.server.workersEnabled })
    const clock = overrides.now ? undefined : await followDatabaseClock(pool, log, machineNow)
    const deps = await makeDeps(config, log, { db, pool, queue }, clock ? { ...overrides, now: clock.now } : overrides)
    const stopObserving = config.telemetry.metrics ? observeService('auth', { pool, queue }) : () => {}
    if (config.telemetry.metrics) startCounters()
    return { ...deps, close: () => inOrder(log, [stopObserving, () => clock?.stop(), () => queue.stop(5_000), close]) }
  } catch (error) {
    await close()
    throw error
  }
}

/** Builds everything that follows from the settings, on an open database and queue. */
export async function makeDeps(
  config: Config,
  log: Logger,
  { db, pool, queue }: Pick<Deps, 'db' | 'pool' | 'queue'>,
  overrides: Overrides = {},
): Promise<Deps> {
  const [passwords, keys, providers] = await Promise.all([
    createPasswords(config.passwords.hashing, config.server.maxRequestSeconds * HASH_WAIT_SHARE * 1000),
    importSigningKeys(config.jwt),
    createProviders(config),
  ])
  const now = overrides.now ?? (() => new Date())
  return {
    config,
    log,
    db,
    pool,
    queue,
    passwords,
    leakedPasswords: createLeakedPasswords(config.passwords.leaks, log),
    keys,
    smsGuards: createSmsGuards({ db, now }, config),
    limits: createLimits({ db, now }, config),
    captcha: createCaptcha({ db, keys, now, config }),
    refreshTokenKey: deriveKey(config.jwt.secret, 'refresh-token'),
    codeKey: deriveKey(config.jwt.secret, 'one-time-code'),
    outboxKey: deriveKey(config.jwt.secret, 'outbox'),
    storageKey: deriveKey(config.encryptionSecret, 'at-rest'),
    attemptKey: deriveKey(config.encryptionSecret, 'attempt'),
    providers,
    findCaller: together((callers: readonly NamedCaller[]) => findCallers(db, callers, config.sessions), MOST_CALLERS),
    rotateSession: createRotateSession({ db, now, config }),
    now,
    newId: randomUUID,
    newRowId: randomUUIDv7,
    random: randomBytes,
    delayMs: randomDelayMs,
    isStopping: () => false,
    ...overrides,
  }
}
