import { runService } from '@services/common/run-service'
import { serve } from './serve.ts'
import { portVariables, startUp } from './start.ts'

await runService(startUp(), serve, portVariables)
