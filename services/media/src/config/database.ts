import { boolean, integer, parsed, text, type Values, type Variables } from '@services/common/config'

export const databaseVariables = {
  DATABASE_URL: text('PostgreSQL connection string.', { required: true, aliases: ['DB_DATABASE_URL'] }),
  DB_MAX_POOL_SIZE: integer(
    'Most connections of requests and workers per process, beside three or so of the queue; 0 means no limit of ours.',
    { default: '20', max: 10_000 },
  ),
  DB_NAMESPACE: parsed(
    'string',
    'Prefix of every table name: `acme` makes `acme_clips`.',
    { default: '' },
    parseNamespace,
  ),
  MIGRATE_ON_START: boolean('Apply migrations at start; false where `migrate` runs on its own.', { default: 'true' }),
} satisfies Variables

export const databaseSettings = (values: Values<typeof databaseVariables>) => ({
  url: values.DATABASE_URL,
  maxPoolSize: values.DB_MAX_POOL_SIZE,
  namespace: values.DB_NAMESPACE,
  migrateOnStart: values.MIGRATE_ON_START,
})

function parseNamespace(value: string): string {
  if (!/^([a-z][a-z0-9_]{0,30})?$/.test(value)) {
    throw new Error('must be up to 31 lower-case letters, digits and underscores, starting with a letter')
  }
  return value
}
