import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'

test.each(['auth', 'media'])('promtool accepts the alerts of %s', { tags: 'promtool' }, (service) => {
  const cwd = new URL('.', import.meta.url)
  for (const args of [
    ['check', 'rules', `${service}.rules.yaml`],
    ['test', 'rules', `${service}.test.yaml`],
  ]) {
    const { status, stdout, stderr } = spawnSync('promtool', args, { cwd, encoding: 'utf8' })
    expect({ status, said: status === 0 ? '' : stdout + stderr }).toEqual({ status: 0, said: '' })
  }
})
