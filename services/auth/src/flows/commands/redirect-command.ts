import { command, printResult } from '@services/common/process/command-line'
import { judgeTarget } from '../../core/redirects/allowed-targets.ts'
import { startUp } from '../../start.ts'

export const redirectCheck = command({
  name: 'redirect check',
  summary: 'say whether a redirect_to is accepted, and by which rule',
  operands: ['URL'],
  details: 'Exit code 0 when it is, 1 when the site URL would be used instead.',
  run: ({ operands: [target = ''], json }) => {
    const { config } = startUp({ toStderr: true })
    const judgement = judgeTarget(target, { siteUrl: config.siteUrl, allowList: config.redirectAllowList })
    const isAccepted = 'rule' in judgement
    const sentence = isAccepted
      ? `accepted: ${judgement.rule}`
      : `refused: ${judgement.reason}; users are sent to ${config.siteUrl} instead`
    printResult(json, { accepted: isAccepted, ...judgement }, sentence)
    if (!isAccepted) process.exitCode = 1
  },
})
