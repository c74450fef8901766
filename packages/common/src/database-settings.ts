import { boolean, integer, oneOf, parsed, type Values, type Variables } from './config.ts'
import { NOTIFY_MODES } from './notifications.ts'

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
      { required: true, aliases: ['DB_DATABASE_URL'] },
      parseDatabaseUrl,
    ),
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

export const databaseSettings = (values: Values<ReturnType<typeof databaseVariables>>) => ({
  url: values.DATABASE_URL,
  maxPoolSize: values.DB_MAX_POOL_SIZE,
  namespace: values.DB_NAMESPACE,
  notify: values.DB_NOTIFY,
  migrateOnStart: values.MIGRATE_ON_START,
})

/** Refuses `#`, `/` and `?` in a password, which would end it and lead to another host or database. */
function parseDatabaseUrl(value: string): string {
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
