// Endpoints and states of clips that are not ready, as far as `test` leaves them out (usualStates).
import { describe } from 'vitest'
import { publicEndpointTests } from './public-endpoint-tests.ts'
import { reportEndpointTests } from './report-endpoint-tests.ts'
import { statementTests } from './statement-tests.ts'
import { rareStates } from './states.ts'

describe('every address without a token', () => publicEndpointTests(rareStates))
describe('reports', () => reportEndpointTests(rareStates))
describe('statements', () => statementTests(rareStates))
