import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'

const promtool = 'promtool'
const hasPromtool = spawnSync(promtool, ['--version']).status === 0

test.runIf(hasPromtool).each(['auth', 'media'])(
  'promtool, where it is installed, finds the alerts of %s right',
  (service) => {
    const cwd = new URL('.', import.meta.url)
    for (const args of [
      ['check', 'rules', `${service}.rules.yaml`],
      ['test', 'rules', `${service}.test.yaml`],
    ]) {
      const { status, stdout, stderr } = spawnSync(promtool, args, { cwd, encoding: 'utf8' })
      expect({ status, said: status === 0 ? '' : stdout + stderr }).toEqual({ status: 0, said: '' })
    }
  },
)
