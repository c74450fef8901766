import { databaseVariables as commonVariables } from '@services/common/database/settings'

export const databaseVariables = commonVariables({
  poolSize: {
    meaning: 'Connections of requests and workers per process, beside about three of the queue; 0 means unlimited.',
    default: '20',
  },
  exampleTable: 'acme_clips',
})
