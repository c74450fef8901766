import { statementTests } from './statement-tests.ts'
import { usualStates } from './states.ts'

statementTests(usualStates)
