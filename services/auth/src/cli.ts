import { runCommandLine } from '@services/common/cli'
import { commands } from './commands.ts'

await runCommandLine('auth', commands)
