import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript'

const TSC = fileURLToPath(new URL('../lib/tsc.js', import.meta.resolve('typescript')))

const compilerOptions = {
  ...{ noEmit: true, skipLibCheck: true, types: [], target: 'es2024', module: 'nodenext', lib: ['es2024', 'dom'] },
  ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
}

/**
 * Type-checks a client program against the types that `openapi-typescript` generates from a document, at `./api.js`.
 * Resolves to the program's exports; throws the compiler's errors.
 */
export async function typedClient<Exports>(document: object, program: string): Promise<Exports> {
  const folder = await mkdtemp(join(tmpdir(), 'typed-client-'))
  try {
    // Contains the client library.
    await symlink(fileURLToPath(new URL('../../../node_modules', import.meta.url)), join(folder, 'node_modules'))
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
    await writeFile(join(folder, 'api.d.ts'), astToString(await openapiTS(document as OpenAPI3)))
    const path = join(folder, 'program.ts')
    await writeFile(path, program)
    await promisify(execFile)(process.execPath, [TSC, '-p', folder]).catch(({ stdout }) => {
      throw new Error(`the program does not fit the document:\n${stdout}`)
    })
    return await import(/* @vite-ignore */ pathToFileURL(path).href)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
