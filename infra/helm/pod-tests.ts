// Tests of the pods of both charts: their rights, their number, their stop.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { brokenRules } from './pod-security.ts'
import { all, objectsOf, pods, type Renderings } from './rendered-objects.ts'

/** File with the time limit of `stopOnSignal`. */
const SHUTDOWN = join(import.meta.dirname, '../../packages/common/src/process/shutdown.ts')

export function podTests(rendered: Renderings): void {
  test('every pod passes the restricted Pod Security Standard, on a read-only file system', () => {
    for (const [name, objects] of rendered) {
      for (const [owner, spec] of pods(objects)) {
        expect(brokenRules(spec), `${name} ${owner}`).toEqual([])
        for (const container of spec.containers) expect(container.securityContext.readOnlyRootFilesystem).toBe(true)
      }
    }
  })

  test('no pod has a service account token or variables of Services', () => {
    for (const [, objects] of rendered) {
      for (const [, spec] of pods(objects)) {
        expect(spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false })
      }
      for (const account of all(objects, 'ServiceAccount')) expect(account.automountServiceAccountToken).toBe(false)
    }
  })

  test('an autoscaled deployment has no replica count', () => {
    let seen = 0
    for (const [, objects] of rendered) {
      const scaled = [...all(objects, 'HorizontalPodAutoscaler'), ...all(objects, 'ScaledObject')]
      const targets = scaled.map(({ spec }) => spec.scaleTargetRef.name)
      expect(new Set(targets).size).toBe(targets.length)
      for (const { metadata, spec } of all(objects, 'Deployment')) {
        expect(spec.replicas === undefined).toBe(targets.includes(metadata.name))
      }
      seen += targets.length
    }
    expect(seen).toBeGreaterThan(0)
  })

  test('the grace period of a pod covers the stop of the service', async () => {
    const [, ms] = /STOP_WITHIN_MS = ([\d_]+)/.exec(await readFile(SHUTDOWN, 'utf8')) ?? []
    const stopSeconds = Number(ms?.replaceAll('_', '')) / 1000
    expect(stopSeconds).toBeGreaterThan(0)
    for (const deployment of all(objectsOf(rendered, 'everything'), 'Deployment')) {
      const { terminationGracePeriodSeconds, containers } = deployment.spec.template.spec
      const sleep = containers[0].lifecycle?.preStop.sleep.seconds ?? 0
      expect(terminationGracePeriodSeconds).toBeGreaterThan(sleep + stopSeconds)
    }
  })
}
