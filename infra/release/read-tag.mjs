// Reads a release tag: `node infra/release/read-tag.mjs auth-v1.2.3` prints service=auth and version=1.2.3, with
// --changes its section of the changelog. Fails when tag, package.json and changelog disagree. Plain JavaScript: any
// Node runs it.
import { readFileSync } from 'node:fs'

const root = new URL(process.env.RELEASE_ROOT ? `file://${process.env.RELEASE_ROOT}/` : '../../', import.meta.url)
const read = (path) => readFileSync(new URL(path, root), 'utf8')

function readTag(tag) {
  const [, service, version] = /^(auth|media)-v(\d+\.\d+\.\d+(?:-[0-9a-z.]+)?)$/.exec(tag) ?? []
  if (!service) throw new Error(`${tag} is not auth-v1.2.3 or media-v1.2.3`)
  const { version: written } = JSON.parse(read(`services/${service}/package.json`))
  if (written !== version) throw new Error(`services/${service}/package.json is at ${written}, the tag at ${version}`)
  return { service, version, changes: changesOf(service, version) }
}

/** The lines below `## <version> (<date>)`, up to the next version. */
function changesOf(service, version) {
  const [, ...sections] = read(`services/${service}/CHANGELOG.md`).split(/^## /m)
  const section = sections.find((text) => text.startsWith(`${version} `) || text.startsWith(`${version}\n`))
  const [heading = '', ...lines] = section?.split('\n') ?? []
  if (!/ \(\d{4}-\d{2}-\d{2}\)$/.test(heading)) {
    throw new Error(`services/${service}/CHANGELOG.md has no "## ${version} (<date>)": ${heading || 'nothing of it'}`)
  }
  return lines.join('\n').trim()
}

try {
  const [tag = '', option] = process.argv.slice(2)
  const { service, version, changes } = readTag(tag)
  process.stdout.write(option === '--changes' ? `${changes}\n` : `service=${service}\nversion=${version}\n`)
} catch (error) {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}
