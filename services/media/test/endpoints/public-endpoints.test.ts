import { publicEndpointTests } from './public-endpoint-tests.ts'
import { usualStates } from './states.ts'

publicEndpointTests(usualStates)
