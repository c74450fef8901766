import type { Command } from '../../packages/common/src/cli.ts'
import { cell, code, type Generated, tableOf } from './generated.ts'

/** Commands in the order of the help, with their options; `commands` between the marks. */
export function commandsPart(page: string, commands: readonly Command[]): Generated {
  const rows = commands.map(({ name, operands = [], options = {}, summary }) => {
    const own = Object.entries(options).map(([option, { value, meaning }]) => {
      return `${code(`--${option}${value ? ` ${value}` : ''}`)}: ${meaning}`
    })
    return [code([name, ...operands].join(' ')), cell(summary), cell(own.join('; '))]
  })
  return { page, mark: 'commands', markdown: tableOf(['Command', 'Does', 'Options'], rows) }
}
