import { oneOf, type Variables } from '@services/common/config'
import { databaseVariables as commonVariables } from '@services/common/database-settings'

export const databaseVariables = {
  ...commonVariables({
    poolSize: { meaning: 'Maximum connections per process; 0: no limit.', default: '0' },
    exampleTable: 'acme_users',
  }),
  DB_DRIVER: oneOf(['postgres'], 'Database driver; only PostgreSQL is supported.', { default: 'postgres' }),
} satisfies Variables
