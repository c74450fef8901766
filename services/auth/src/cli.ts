import { runCommandLine } from '@services/common/process/command-line'
import { commands } from './commands.ts'

await runCommandLine('auth', commands)
