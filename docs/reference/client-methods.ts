// Table of the public client's methods in docs/reference/auth/client-methods.md. The names are those of its type
// declarations, as the compiler reads them; the tests are those of services/auth/test/auth-js/methods.ts.
import { join } from 'node:path'
import { API } from 'typescript/unstable/sync'
import { METHODS, type Missing, type ShownBy } from '../../services/auth/test/auth-js/methods.ts'
import { WHILE_OFF } from '../../services/auth/test/auth-js/while-off.ts'
import { code, type Generated, tableOf } from './generated.ts'

const TESTS = 'services/auth/test/auth-js'
const FOLDER = join(import.meta.dirname, '../..', TESTS)

/** Throws where the table of tests lacks a method of the installed client, or has one of another version. */
export function clientMethodsPart(): Generated {
  const declared = declaredMethods()
  const rows = new Map<string, ShownBy | Missing>(Object.entries(METHODS))
  const different = [
    ...declared.filter((name) => !rows.has(name)),
    ...[...rows.keys()].filter((name) => !declared.includes(name)),
  ]
  if (different.length > 0) throw new Error(`${TESTS}/methods.ts differs from the client: ${different.join(', ')}`)
  const off = new Map(Object.entries(WHILE_OFF))
  const cellsOf = ([name, shown]: [string, ShownBy | Missing]) => {
    const [status, error] = off.get(name) ?? []
    const whileOff = error === undefined ? '' : `${status} ${code(error)}`
    if ('missing' in shown) return [code(name), shown.missing, '', whileOff]
    return [code(name), shown.title, `[${shown.file}](../../../${TESTS}/${shown.file})`, whileOff]
  }
  const markdown = tableOf(['Method', 'Test', 'In', 'While off'], [...rows].map(cellsOf))
  return { page: 'auth/client-methods.md', mark: 'methods', markdown }
}

/** Members of the union `ClientMethod`: the compiler walks the classes, and knows which members are private. */
function declaredMethods(): string[] {
  // Without a configuration of its own the file would belong to that of the whole repository.
  const config = join(FOLDER, 'tsconfig.json')
  const compilerOptions = { types: [], lib: ['es2024', 'dom'], module: 'nodenext', allowImportingTsExtensions: true }
  const api = new API({
    fs: {
      fileExists: (path) => (path === config ? true : undefined),
      readFile: (path) => (path === config ? JSON.stringify({ compilerOptions, files: ['methods.ts'] }) : undefined),
    },
  })
  try {
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config)
    const file = join(FOLDER, 'methods.ts')
    const module = project?.program.getSourceFile(file)
    const symbol = module && project?.checker.getSymbolAtLocation(module)
    const union = symbol && project?.checker.getMemberInModuleExports(symbol, 'ClientMethod')
    const type = union && project?.checker.getDeclaredTypeOfSymbol(union)
    if (!type?.isUnionType()) throw new Error('ClientMethod is no union of names')
    return type.getTypes().flatMap((member) => (member.isStringLiteralType() ? [member.value] : []))
  } finally {
    api.close()
  }
}
