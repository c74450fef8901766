import { CommandFailure, command, printResult, UsageError } from '@services/common/process/command-line'
import { parseSignedVariant } from '../../../core/variants/variant.ts'
import { startUp } from '../../../start.ts'
import { signVariant } from './signature.ts'

const variantsSign = command({
  name: 'variants sign',
  summary: 'print the signed address of a variant of a clip',
  operands: ['OPTIONS', 'FILE'],
  details:
    'OPTIONS are as in w:320,h:180,fit:cover and FILE is as in aB3dE9xK.webp. The first key of MEDIA_VARIANT_KEY signs.',
  run: async ({ operands: [options = '', file = ''], json }) => {
    const { config } = startUp({ toStderr: true })
    const [key] = config.variantKeys
    if (!key) throw new CommandFailure('MEDIA_VARIANT_KEY is not set')
    const [, extension] = /^[0-9A-Za-z]+\.([a-z0-9]+)$/.exec(file) ?? []
    if (!extension || !parseSignedVariant(options, extension)) throw new UsageError('no variant has these options')
    const path = `/${options}/${file}`
    const url = `${config.site.filesBaseUrl}/v/${signVariant(key, path)}${path}`
    printResult(json, { url }, url)
  },
})

export const variantCommands = [variantsSign]
