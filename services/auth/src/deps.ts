import { randomBytes, randomUUID, randomUUIDv7 } from 'node:crypto'
import { batchLoads } from '@services/common/concurrency/batch-loads'
import type { DatabaseOptions } from '@services/common/database/pool'
import { type Reads, readsOf } from '@services/common/database/replica'
import { openEgress } from '@services/common/egress/open-egress'
import { observeService } from '@services/common/process/process-metrics'
import { openServiceDatabase, type ServiceSchema } from '@services/common/process/service-database'
import { inOrder } from '@services/common/process/shutdown'
import type { Queue } from '@services/common/queue/queue'
import type { Logger } from '@services/common/telemetry/logger'
import type { Kysely } from 'kysely'
import type pg from 'pg'
import { createProviders } from './adapters/providers/index.ts'
import { appleSecondsLeft } from './config/faults.ts'
import type { Config } from './config.ts'
import { createCustomProviders } from './core/custom-providers/find-custom-provider.ts'
import { createHookFailures } from './core/hooks/hook-failures.ts'
import { createHooks } from './core/hooks/hooks.ts'
import { deriveKey } from './core/keys/derive-key.ts'
import { createEncryption } from './core/keys/encryption.ts'
import { watchSealedRows } from './core/keys/sealed-rows.ts'
import { importSigningKeys } from './core/keys/signing-keys.ts'
import { createSmsGuards } from './core/limits/sms-guards.ts'
import { createFirstAttempts } from './core/message-hooks/request-attempts.ts'
import { createClientKeySets } from './core/oauth-server/client-keys.ts'
import { createClientDocuments } from './core/oauth-server/documents/client-documents.ts'
import { findOAuthClients } from './core/oauth-server/oauth-clients.store.ts'
import { findIntrospected, type NamedInRequest } from './core/oauth-server/tokens/introspected.store.ts'
import { createOpenClientSession } from './core/oauth-server/tokens/open-client-session.ts'
import type { RandomBytes } from './core/one-time-tokens/one-time-token.ts'
import { randomDelayMs } from './core/outbox/job-delay.ts'
import { MESSAGE_QUEUES } from './core/outbox/outbox.ts'
import { createPasswords } from './core/passwords/hash-password.ts'
import { createLeakedPasswords } from './core/passwords/leaked-passwords.ts'
import { createPasswordAttempts } from './core/passwords/password-attempts.ts'
import { findCallers, type NamedCaller } from './core/sessions/find-callers.store.ts'
import { createRotateSession } from './core/sessions/rotate-session.ts'
import { createStatistics } from './core/statistics/statistics.ts'
import { MESSAGE_REQUEST_QUEUE } from './core/verification-messages/message-request.ts'
import { openChains } from './core/web3/chains.ts'
import { followReceivers } from './core/webhooks/follow-receivers.ts'
import { type EventRecorder, recordEvents } from './core/webhooks/record-events.ts'
import { followDatabaseClock } from './db/database-clock.ts'
import { type DB, TABLES } from './db/tables.ts'
import { createCaptcha } from './http/caller/captcha.ts'
import { createLimits } from './http/limits/rate-limit.ts'
import { observeAppleSecret, observeSealedRows, startCounters } from './metrics.ts'
import { VERSION } from './version.ts'

/** Everything that routes and flows need, as plain values; core/ takes only the parts it uses. */
export type Deps = Awaited<ReturnType<typeof makeDeps>>

const PROCESS_DEFAULTS = {
  now: () => new Date(),
  newId: (): string => randomUUID(),
  random: randomBytes as RandomBytes,
  /** Delay of the next job (core/outbox/job-delay.ts). */
  delayMs: randomDelayMs,
  /** True once the process has been asked to stop. */
  isStopping: () => false,
}

/** Overrides: the running service sets `isStopping`, tests the clock, randomness and time limits of the database. */
export type Overrides = Partial<typeof PROCESS_DEFAULTS> &
  Pick<DatabaseOptions, 'connectWithinMs' | 'statementWithinMs'> & {
    /** Machine clock, corrected by the database's; `now` is used uncorrected. */
    machineNow?: () => Date
  }

/** Callers looked up by one statement. */
const MAX_CALLERS = 32

/** Share of a request's time spent waiting for a password hash; the rest is for the hash and the work after it. */
const HASH_WAIT_SHARE = 0.5

export const SCHEMA: ServiceSchema = {
  name: 'auth',
  tables: TABLES,
  migrations: new URL('../migrations', import.meta.url),
  queues: [...Object.values(MESSAGE_QUEUES), MESSAGE_REQUEST_QUEUE],
}

/** Connects, migrates if configured, and opens the queue. `close` undoes all of it in reverse order. */
export async function openDeps(
  config: Config,
  log: Logger,
  { connectWithinMs, statementWithinMs, machineNow, ...overrides }: Overrides = {},
): Promise<Deps & { close(): Promise<void> }> {
  const isWorker = config.server.workersEnabled
  const how = { isWorker, connectWithinMs, statementWithinMs }
  const { close, ...parts } = await openServiceDatabase<DB>(SCHEMA, config, log, how)
  const { pool, queue, reads } = parts
  try {
    const clock = overrides.now ? undefined : await followDatabaseClock(pool, log, machineNow)
    const deps = await makeDeps(config, log, parts, clock ? { ...overrides, now: clock.now } : overrides)
    // Where the clock is given, no time passes by itself.
    const unfollowReceivers = await followReceivers(deps, { polls: clock !== undefined })
    const stopObserving = config.telemetry.metrics ? observeService('auth', parts) : () => {}
    if (config.telemetry.metrics) {
      startCounters()
      observeAppleSecret(() => appleSecondsLeft(config, deps.now()))
      observeSealedRows(deps.sealedRows.figures)
    }
    const stopCounting = deps.statistics?.start()
    return {
      ...deps,
      close: () =>
        inOrder(log, [
          () => stopCounting?.(),
          stopObserving,
          unfollowReceivers,
          () => clock?.stop(),
          () => queue.stop(5_000),
          () => deps.egress.close(),
          () => deps.clientEgress.close(),
          deps.hooks.close,
          deps.hookFailures.written,
          () => deps.receivers.close(),
          () => reads.close(),
          close,
        ]),
    }
  } catch (error) {
    await close()
    throw error
  }
}

interface OpenParts {
  db: Kysely<DB>
  pool: pg.Pool
  queue: Queue
  reads?: Reads<DB>
  /** Recorder of this database handle, which has one. */
  events?: EventRecorder
}

/** Builds everything that follows from the settings, on an open database and queue. */
export async function makeDeps(
  config: Config,
  log: Logger,
  { db, pool, queue, reads = readsOf(db), events }: OpenParts,
  overrides: Partial<typeof PROCESS_DEFAULTS> = {},
) {
  const processValues = { ...PROCESS_DEFAULTS, ...overrides }
  const { now } = processValues
  const encryption = createEncryption(config.encryption)
  const newRowId = (): string => randomUUIDv7()
  const openClient = () =>
    openEgress({ ...config.egress, requiresTls: true, ports: 'any', userAgent: `auth/${VERSION}` })
  const egress = openClient()
  const customProviders = createCustomProviders({ config, db, egress, encryption, now, log })
  const [passwords, keys, providers, web3] = await Promise.all([
    createPasswords(config.passwords.hashing, config.server.maxRequestSeconds * HASH_WAIT_SHARE * 1000),
    importSigningKeys(config.jwt),
    createProviders(config, undefined, customProviders),
    openChains(config.web3),
  ])
  const hookFailures = createHookFailures({ db, log, now, newRowId })
  const hooks = createHooks({ db, log, ...processValues, config, recordFailure: hookFailures.record })
  return {
    config,
    log,
    db,
    /** Database of lists: the replica, if there is one. */
    reads,
    pool,
    queue,
    /** Client for receivers of events, whose slots no other request takes. */
    receivers: openClient(),
    /** Client for addresses that an admin chooses. */
    egress,
    /** Client for addresses that a client of the OAuth server chooses: strangers, whose servers may hang. */
    clientEgress: openClient(),
    /** Fetched keys of clients of the OAuth server. */
    clientKeySets: createClientKeySets(),
    /** Fetches of their metadata documents. */
    clientDocuments: createClientDocuments(),
    passwords,
    leakedPasswords: createLeakedPasswords(config.passwords.leaks, log),
    keys,
    smsGuards: createSmsGuards({ db, now }, config),
    limits: createLimits({ db, now }, config),
    passwordAttempts: createPasswordAttempts({ db, now }, { freeAttempts: config.limits.freeWrongPasswords }),
    captcha: createCaptcha({ db, keys, now, config }),
    refreshTokenKey: deriveKey(config.jwt.secret, 'refresh-token'),
    trustedDeviceKey: deriveKey(config.jwt.secret, 'trusted-device'),
    codeKey: deriveKey(config.jwt.secret, 'one-time-code'),
    outboxKey: deriveKey(config.jwt.secret, 'outbox'),
    /** Encrypts secrets in the database (core/keys/sealed-columns.ts). */
    encryption,
    /** Rows by the key that encrypted them; the running service starts it. */
    sealedRows: watchSealedRows({ db, config, encryption, now, log }),
    /** Authenticates attempts at providers: the browser's cookie, and the state it carries before one begins. */
    attemptKey: deriveKey(config.jwt.secret, 'attempt'),
    providers,
    customProviders,
    /** Chains whose wallets sign in. */
    web3,
    /** The operator's own code; nothing is asked where it is disabled. */
    hooks,
    hookFailures,
    /** Attempts of requests at their own messages; undefined where none waits for a hook. */
    firstAttempts: createFirstAttempts({ db, log, now, encryption, hooks, config, random: processValues.random }),
    web3NonceKey: deriveKey(config.jwt.secret, 'web3-nonce'),
    /** Makes the codes of the OAuth server. */
    oauthCodeKey: deriveKey(config.jwt.secret, 'oauth-code'),
    passkeyChallengeKey: deriveKey(config.jwt.secret, 'passkey-challenge'),
    /** Numbers of the console's overview. */
    statistics: createStatistics({ db, queue, log, ...processValues, config }),
    /** Writes the events of users for the operator's own servers. */
    events: events ?? recordEvents({ db, config, log, now, newRowId }),
    findCaller: batchLoads((callers: readonly NamedCaller[]) => findCallers(db, callers, config.sessions), MAX_CALLERS),
    findIntrospected: batchLoads(
      (requests: readonly NamedInRequest[]) => findIntrospected(db, requests, config.sessions),
      MAX_CALLERS,
    ),
    findOAuthClient: batchLoads((ids: readonly string[]) => findOAuthClients(db, ids), MAX_CALLERS),
    openClientSession: createOpenClientSession({ db, now, config }),
    rotateSession: createRotateSession({ db, now, config }),
    /** UUIDv7, for rows of sign-ins and refreshes: their index grows at its end, not at a random page per row. */
    newRowId,
    ...processValues,
  }
}
