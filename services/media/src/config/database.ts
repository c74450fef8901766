import { databaseVariables as commonVariables } from '@services/common/database-settings'

export const databaseVariables = commonVariables({
  poolSize: {
    meaning:
      'Most connections of requests and workers per process, beside three or so of the queue; 0 means no limit of ours.',
    default: '20',
  },
  exampleTable: 'acme_clips',
})
