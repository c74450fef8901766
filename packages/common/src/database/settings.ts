import { boolean, duration, integer, oneOf, parsed, type Values, type Variables } from '../config/variables.ts'

/** Ways of notifying queue workers and listeners (batched-notify.ts). */
export const NOTIFY_MODES = ['batched', 'each', 'none'] as const
export type NotifyMode = (typeof NOTIFY_MODES)[number]

interface DatabaseDefaults {
  poolSize: { meaning: string; default: string }
  /** A table's name under the namespace `acme`. */
  exampleTable: string
}

export const databaseVariables = ({ poolSize, exampleTable }: DatabaseDefaults) =>
  ({
    DATABASE_URL: parsed(
      'string',
      'PostgreSQL connection string; with TLS `?sslmode=verify-full`, and `sslrootcert=` the file of an authority of your own.',
      { required: true, secret: true, aliases: ['DB_DATABASE_URL'] },
      parseDatabaseUrl,
    ),
    DATABASE_POOLER: oneOf(
      ['none', 'transaction'],
      'Pooler behind DATABASE_URL: `transaction` for PgBouncer 1.21 or later in transaction mode.',
      { default: 'none' },
    ),
    DATABASE_DIRECT_URL: parsed(
      'string',
      'Connection string of PostgreSQL itself, past the pooler: for LISTEN, migrations and commands; after a failover it must lead to the new primary. Default: DATABASE_URL.',
      { secret: true },
      parseDatabaseUrl,
    ),
    DATABASE_FALLBACK_URLS: parsed(
      'list',
      'Connection strings of further hosts, separated by commas or spaces. The first that accepts writes is used, and used until it fails. LISTEN, migrations and commands use DATABASE_DIRECT_URL alone, if set.',
      { default: '', secret: true },
      (value) =>
        value
          .split(/[\s,]+/)
          .filter(Boolean)
          .map(parseDatabaseUrl),
    ),
    DATABASE_REPLICA_URL: parsed(
      'string',
      'Connection string of a streaming standby itself, not of a pooler. It answers lists, exports and public pages; while it is late or away, the primary does.',
      { secret: true },
      parseDatabaseUrl,
    ),
    DATABASE_REPLICA_MAX_LAG: duration('Lag from which on the replica is not used.', { default: '5s', positive: true }),
    DB_MAX_POOL_SIZE: integer(poolSize.meaning, { default: poolSize.default, max: 10_000 }),
    DB_NAMESPACE: parsed(
      'string',
      `Prefix of every table name: \`acme\` makes \`${exampleTable}\`.`,
      { default: '' },
      parseNamespace,
    ),
    DB_NOTIFY: oneOf(
      NOTIFY_MODES,
      'Notification of workers and waiting requests: `batched` after the commit, at most every 50 ms; `each` in its transaction, so that these commit one after the other; `none`: they poll every 500 ms. The same in all processes.',
      { default: 'batched' },
    ),
    MIGRATE_ON_START: boolean('Apply migrations at start; false where `migrate` runs on its own.', { default: 'true' }),
  }) satisfies Variables

type DatabaseValues = Values<ReturnType<typeof databaseVariables>>

export const databaseSettings = (values: DatabaseValues) => ({
  url: withModeOfDriver(values.DATABASE_URL),
  pooler: values.DATABASE_POOLER,
  directUrl: withModeOfDriver(values.DATABASE_DIRECT_URL ?? values.DATABASE_URL),
  fallbackUrls: values.DATABASE_FALLBACK_URLS.map(withModeOfDriver),
  replica: values.DATABASE_REPLICA_URL
    ? { url: withModeOfDriver(values.DATABASE_REPLICA_URL), maxLagSeconds: values.DATABASE_REPLICA_MAX_LAG }
    : undefined,
  maxPoolSize: values.DB_MAX_POOL_SIZE,
  namespace: values.DB_NAMESPACE,
  notify: values.DB_NOTIFY,
  migrateOnStart: values.MIGRATE_ON_START,
})

/** Modes that check less in libpq. The driver takes each as verify-full and prints a warning of its own about it. */
const STRICTER_HERE = /(?<=[?&]sslmode=)(prefer|require|verify-ca)(?=&|$)/

const modeTakenStricter = (url: string): string | undefined =>
  /[?&]uselibpqcompat=true(&|$)/.test(url) ? undefined : STRICTER_HERE.exec(url)?.[1]

/** Names the mode as the driver applies it. */
export const withModeOfDriver = (url: string): string =>
  modeTakenStricter(url) === undefined ? url : url.replace(STRICTER_HERE, 'verify-full')

/** Warns of modes of TLS that mean something else than in libpq. */
export function databaseWarnings(values: DatabaseValues, prefix: string): string[] {
  const urls = {
    DATABASE_URL: [values.DATABASE_URL],
    DATABASE_DIRECT_URL: [values.DATABASE_DIRECT_URL],
    DATABASE_FALLBACK_URLS: values.DATABASE_FALLBACK_URLS,
    DATABASE_REPLICA_URL: [values.DATABASE_REPLICA_URL],
  }
  return Object.entries(urls).flatMap(([name, given]) => {
    const modes = given.map((url) => url && modeTakenStricter(url)).filter((mode) => mode !== undefined)
    return [...new Set(modes)].map(
      (mode) =>
        `${prefix}${name}: sslmode=${mode} is taken as verify-full, so the certificate must be trusted and name the host; write verify-full, or no-verify for TLS without a check`,
    )
  })
}

const SEVERAL_HOSTS = /^postgres(ql)?:\/\/([^/?#]*@)?[^/?#@]*,[^/?#@]*([/?#]|$)|[?&]host=[^&]*(,|%2c)/i

/** Refuses `#`, `/` and `?` in a password, which would end it and lead to another host or database. */
export function parseDatabaseUrl(value: string): string {
  // Settings of libpq that the driver does not follow.
  if (SEVERAL_HOSTS.test(value)) {
    throw new Error('must name one host; DATABASE_FALLBACK_URLS has a connection string for each further one')
  }
  if (/[?&]target_session_attrs=/.test(value)) {
    throw new Error(
      'must not have target_session_attrs; with DATABASE_FALLBACK_URLS only a server that accepts writes is used',
    )
  }
  const isUrl = /^postgres(ql)?:\/\/[^#\s]([^#]*[^#\s])?$/i.test(value) && URL.canParse(value)
  if (!isUrl || /[/@]/.test(new URL(value).pathname.slice(1))) {
    throw new Error('must be postgres://user:password@host/database, with # / ? @ in a password as %23 %2F %3F %40')
  }
  return value
}

/** Restricts the namespace, which becomes part of SQL without quotes. */
function parseNamespace(value: string): string {
  if (!/^([a-z][a-z0-9_]{0,30})?$/.test(value)) {
    throw new Error('must be up to 31 lower-case letters, digits and underscores, starting with a letter')
  }
  // The queue's schema begins with it, and PostgreSQL reserves pg_.
  if (/^pg(_|$)/.test(value)) throw new Error('must not be pg nor begin with pg_')
  return value
}
