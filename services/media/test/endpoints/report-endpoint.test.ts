import { reportEndpointTests } from './report-endpoint-tests.ts'
import { usualStates } from './states.ts'

reportEndpointTests(usualStates)
