import { oneOf, type Variables } from '@services/common/config'
import { databaseVariables as commonVariables } from '@services/common/database-settings'

export const databaseVariables = {
  ...commonVariables({
    poolSize: { meaning: 'Most connections per process; 0 means no limit of ours.', default: '0' },
    exampleTable: 'acme_users',
  }),
  DB_DRIVER: oneOf(['postgres'], 'Only PostgreSQL is served.', { default: 'postgres' }),
} satisfies Variables
