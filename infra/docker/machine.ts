// What a registry would give, out of what this machine has: a Debian of the suite that the image's tag names, Node from the
// npm package of the workspace. How packages are reached is the machine's own business and is passed in, never written down.
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const run = (command: string, ...args: string[]) => execFileSync(command, args, { encoding: 'utf8' }).trim()

/** The directory of a root like that of `node:24.21.0-trixie-slim`, made once and kept; nobody else may write into it. */
export function baseRoot(image: string, repository: string, folder: string): string {
  const [, version, suite] = /^node:([\d.]+)-([a-z]+)-slim(?:@sha256:[0-9a-f]{64})?$/.exec(image) ?? []
  if (!version || !suite) throw new Error(`${image} cannot be imitated: node:<version>-<suite>-slim can`)
  const node = realpathSync(join(repository, 'node_modules/node-bin/bin/node'))
  const installed = run(node, '--version')
  if (installed !== `v${version}`) throw new Error(`the image has Node ${version}, the workspace ${installed}`)
  const root = join(folder, `base-${suite}-${version}`)
  if (existsSync(root)) return root

  const made = `${root}.making`
  rmSync(made, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const mirror = run('apt-get', 'indextargets', '--format', '$(SITE)').split('\n').sort()[0] ?? ''
  run('debootstrap', '--variant=minbase', suite, made, mirror)
  slim(made)
  for (const file of ['etc/resolv.conf', 'etc/hosts']) writeFileSync(join(made, file), '')
  rmSync(join(made, 'etc/apt/sources.list'), { force: true })
  const stanza = (uri: string, suites: string) =>
    `Types: deb\nURIs: ${uri}\nSuites: ${suites}\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n`
  writeFileSync(
    join(made, 'etc/apt/sources.list.d/debian.sources'),
    `${stanza(mirror, `${suite} ${suite}-updates`)}\n${stanza(`${mirror}-security`, `${suite}-security`)}`,
  )
  cpSync(node, join(made, 'usr/local/bin/node'))
  const npm = join(run('npm', '--loglevel=error', 'root', '--global'), 'npm')
  cpSync(npm, join(made, 'usr/local/lib/node_modules/npm'), { recursive: true })
  run('ln', '-s', '../lib/node_modules/npm/bin/npm-cli.js', join(made, 'usr/local/bin/npm'))
  run('ln', '-s', '../lib/node_modules/npm/bin/npx-cli.js', join(made, 'usr/local/bin/npx'))
  renameSync(made, root)
  return root
}

/** What the slim images of Debian leave out, now and in packages that come later. */
function slim(root: string): void {
  const leftOut = ['doc', 'man', 'info', 'locale', 'groff', 'lintian', 'linda']
  for (const name of leftOut) rmSync(join(root, 'usr/share', name), { recursive: true, force: true })
  const excludes = leftOut.map((name) => `path-exclude /usr/share/${name}/*`)
  writeFileSync(join(root, 'etc/dpkg/dpkg.cfg.d/slim'), `${excludes.join('\n')}\n`)
  run('sh', '-c', `rm -rf '${root}'/var/cache/apt/* '${root}'/var/lib/apt/lists/* '${root}'/var/log/*`)
}

/** Where a build finds the machine's settings. */
const SETTINGS_AT = '/run/machine'

/** Arguments of bubblewrap and variables with which npm, pnpm and apt in a root reach what they reach on this machine. */
export function machineSettings(
  environment: Record<string, string | undefined>,
  folder: string,
): { args: string[]; env: Record<string, string> } {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'apt.conf'), run('apt-config', 'dump', 'Acquire'))
  const files: Record<string, string> = { 'apt.conf': join(folder, 'apt.conf') }
  const env: Record<string, string> = { APT_CONFIG: `${SETTINGS_AT}/apt.conf` }
  for (const kind of ['userconfig', 'globalconfig']) {
    const path = run('npm', '--loglevel=error', 'config', 'get', kind)
    if (!existsSync(path)) continue
    files[kind] = path
    env[`NPM_CONFIG_${kind.toUpperCase()}`] = `${SETTINGS_AT}/${kind}`
  }
  const authorities = environment.NODE_EXTRA_CA_CERTS ?? '/etc/ssl/certs/ca-certificates.crt'
  if (existsSync(authorities)) {
    files.authorities = authorities
    for (const name of ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'NPM_CONFIG_CAFILE'])
      env[name] = `${SETTINGS_AT}/authorities`
  }
  for (const [name, value] of Object.entries(environment)) {
    if (/^(https?|no|all)_proxy$|^npm_config_registry$/i.test(name) && value) env[name] = value
  }
  const binds = Object.entries(files).flatMap(([name, path]) => ['--ro-bind', path, join(SETTINGS_AT, name)])
  return { args: ['--tmpfs', SETTINGS_AT, ...binds], env }
}

/** Takes away the empty places that the machine's settings were mounted on. */
export const forgetMachine = (root: string): void => rmSync(join(root, SETTINGS_AT), { recursive: true, force: true })

/** Bubblewrap's arguments for a root that is written to by its root user. */
export const rootArgs = (root: string): string[] => [
  ...['--bind', root, '/', '--dev', '/dev', '--proc', '/proc', '--perms', '1777', '--tmpfs', '/tmp'],
  ...['--ro-bind', '/etc/resolv.conf', '/etc/resolv.conf', '--ro-bind', '/etc/hosts', '/etc/hosts'],
  ...['--unshare-pid', '--unshare-ipc', '--die-with-parent', '--cap-add', 'ALL', '--clearenv'],
]
