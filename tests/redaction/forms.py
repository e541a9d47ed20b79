"""Texts that tell of somebody, each with `s3cr3t` where it does, and texts that tell of nobody."""

MARK = "s3cr3t"
TELLING = (
    # Named values, as environments, commands, configurations, documents and headers write them.
    *("WANDB_API_KEY=s3cr3tabcdef", "AWS_SECRET_ACCESS_KEY=s3cr3t/abc+efghij", "DB_PASSWORD=s3cr3tabcd", "PGPASSWORD=s3cr3t"),
    *("MYSQL_PWD=s3cr3t", "PASSWORD_PROD=s3cr3tabc", "DJANGO_SECRET_KEY=s3cr3tabc", "GPG_PASSPHRASE=s3cr3t", "STRIPE_KEY=s3cr3tabcd"),
    *("client_secret=s3cr3tabcd", "password: s3cr3tabcd", "password : s3cr3t", "password=>s3cr3t", "dbPassword: s3cr3t", "my-password: s3cr3t"),
    *("spring.datasource.password=s3cr3t", '{"password": "s3cr3tabcd"}', 'password="s3cr3tabcd"', '{\\"db_password\\": \\"s3cr3tabcd\\"}'),
    *("{'USER': 's3cr3t', 'HOME': '/home/s3cr3t'}", "os.environ['OPENAI_API_KEY'] = 's3cr3tabcdef'", "('USER', 's3cr3t')"),
    *("env: A=1 HF_TOKEN=s3cr3tabcdef B=2", "export HF_TOKEN='s3cr3tabcdef'", "token: s3cr3tabcdef", 'token = "s3cr3tabcdef"'),
    *("--token s3cr3tabcdefghij", "--password=s3cr3t", "--password 's3cr3t x'", "--api-key s3cr3t", "['--token', 's3cr3tabcdef']"),
    *("mysql -u root -ps3cr3t db", "sshpass -p s3cr3t ssh x", "curl -u user:s3cr3t https://x.com/", "<password>s3cr3t</password>"),
    *("Authorization: Bearer s3cr3tabcdefgh", "authorization: token s3cr3tabcdef", '"Authorization": "Basic s3cr3tabcd=="'),
    *("Bearer s3cr3tabcdefgh", "Cookie: sessionid=s3cr3tabc; csrftoken=s3cr3tdef", "X-Api-Key: s3cr3tabc", "x-auth-token: s3cr3tabc"),
    *("machine api.x.com login s3cr3t password s3cr3t", "_authToken=s3cr3tabcdef", "AccountKey=s3cr3tabcdefgh==;Suffix=x"),
    *("?sv=2020-08-04&sig=s3cr3tabcdef%3D", "Server=db;User Id=s3cr3t;Password=s3cr3tabc;"),
    # Tokens by the form that their issuer gives them.
    *("AKIAS3CR3TQWERTYUIOP", "ASIAS3CR3TQWERTYUIOP", "sk-s3cr3tabcdefghijklmnopqrst", "sk-ant-api03-s3cr3tabcdefghijk", "sk_live_s3cr3tabcdefghijk"),
    *("ghp_s3cr3tabcdefghijklmnopqrst", "ghu_s3cr3tabcdefghijklmnopqrst", "github_pat_s3cr3tabcdefghijklmno", "glpat-s3cr3tabcdefghijk"),
    *("xoxb-1234-5678-s3cr3tabcdef", "nvapi-s3cr3tabcdefghijklm", "hf_s3cr3tabcdefghijklmnop", "npm_s3cr3tabcdefghijklmnop"),
    *("pypi-AgEIcHlwaS5vcmcs3cr3tabcdef", "dapis3cr3t0123456789abcdef0123456789", "dckr_pat_s3cr3tabcdefghijk", "dop_v1_s3cr3tabcdefghijk012"),
    *("SG.s3cr3tabcdefghijk.s3cr3tabcdefghijklmnop", "AIzas3cr3tabcdefghijklmnopqrstuvwx", "hvs.s3cr3tabcdefghijklmnop", "gsk_s3cr3tabcdefghijklm"),
    *("eyJhbGciOiJIUzI1NiJ9.eyJs3cr3t.abcdefgh", "123456789:AAs3cr3tabcdefghijklmnopqrstuvwxyz", "lin_api_s3cr3tabcdefghijklmnop"),
    "-----BEGIN OPENSSH PRIVATE KEY----- s3cr3t -----END OPENSSH PRIVATE KEY-----",
    # URLs.
    *("postgresql://s3cr3t:s3cr3t@db.example.com:5432/prod", "redis://:s3cr3t@redis:6379/0", "https://s3cr3t.example.com/a/b"),
    *("https://bucket.s3.amazonaws.com/key?X-Amz-Signature=s3cr3tabc&X-Amz-Credential=s3cr3t", "https://host/a?token=s3cr3t"),
    *("https://hooks.slack.com/services/T000/B000/s3cr3tABCDEFGHIJKLMN", "https://discord.com/api/webhooks/12345/s3cr3tABCDEFGHIJKLMNOPQ"),
    # People and machines.
    *("USER=s3cr3t", "USERNAME=s3cr3t", "LOGNAME=s3cr3t", "SUDO_USER=s3cr3t", "SLURM_JOB_USER=s3cr3t", "user: s3cr3t", '"user": "s3cr3t"'),
    *("--user s3cr3t", "HOST=s3cr3t", "HOSTNAME=s3cr3t", "SLURMD_NODENAME=s3cr3t", "MASTER_ADDR=s3cr3t", "--master_addr s3cr3t"),
    *("--rdzv_endpoint=s3cr3t:29500", "hostname: s3cr3t", "s3cr3t@example.com", "1s3cr3t@example.com", "run by s3cr3t@gpu-node-3"),
    *("s3cr3t@10.0.0.1", "alice:s3cr3t@node17", "s3cr3t.internal", "node-s3cr3t.cluster.local"),
    # Paths.
    *("C:\\Users\\s3cr3t\\proj\\a.py", "C:\\\\Users\\\\s3cr3t\\\\proj\\\\a.py", "C:/Users/s3cr3t/proj/a.py", "\\\\s3cr3t\\share\\x\\y"),
    *("\\\\\\\\s3cr3t\\\\share\\\\x\\\\y", "/mnt/c/Users/s3cr3t/proj/x.py", "/Users/John s3cr3t Doe/proj/train.py", "/users/s3cr3t/proj/run"),
    *("/home/s3cr3t", "/home/s3cr3t/", "/home1/s3cr3t/proj/ckpt", "/u/s3cr3t/proj/ckpt", "/u/s3cr3t", "/n/home01/s3cr3t/x", "/scratch/s3cr3t"),
    *("/afs/cern.ch/user/z/s3cr3t/run", "/global/homes/s/s3cr3t/x", "/global/u1/s/s3cr3t/x", "/pscratch/sd/s/s3cr3t/run", "/tmp/s3cr3t/x"),
    *("/gpfs/users/s3cr3t/run", "/lustre/s3cr3t/run", "~s3cr3t/proj/run", "file:///home/s3cr3t/x/y.py", "/tmp/torchinductor_s3cr3t/ab/c.py"),
)  # fmt: skip
ADDRESSES = (
    *("10.17.100.9:29500", "10.17.100.9", "tcp://10.17.100.9:29500", "192.168.1.17 rank 3", "MASTER_ADDR=10.17.1.2", "from 54.12.3.4"),
    *("SSH_CLIENT=10.17.1.2 50000 22", "2001:db8:85a3::8a2e:370:7334", "fe80::1ff:fe23:4567:890a%eth0", "[fe80::1ff:fe23:4567:890a]:29500"),
    *("ip-10-17-100-9.ec2.internal", "3c:ec:ef:12:34:56", "password=73000001"),
)  # fmt: skip
"""Of these no number stays that has more than one digit and is no port."""
HARMLESS = (
    # Names of kernels and operators.
    *("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x6_tn_align4>(Params)", "aten::key_padding_mask", "token_embedding"),
    *("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel", "triton_poi_fused_add_7d3f"),
    *("ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn", "_ZN7cutlass6KernelIN4gemm6device4GemmEEEvT_", "std::pair<user, host>"),
    *("at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::OpaqueType<4u>, unsigned int, 4, 64, 64>", "secret_sharing_kernel<f>"),
    *("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "radix_sort_key_value<int, long>", "operator/(a, b)"),
    *("autograd::engine::evaluate_function: AddmmBackward0", "nn.Module: TokenEmbedding_0", "Memcpy HtoD (Pageable -> Device)", "ab::cd", "f1::f2"),
    *("<built-in method run_backward of torch._C._EngineBase object at 0x7f1>", "enumerate(DataLoader)#_BaseDataLoaderIter.__next__"),
    # What looks like a named value.
    *("tokenizer: BertTokenizer", "pass_through=True", "num_tokens=4096", "tokens: 128", "token=128", "max_position=512", "key=query", "key: value"),
    *("key: [32, 128, 64]", "key=torch.float16", "past_key_values: DynamicCache", "q, k, key, value", "forward pass: 3", "forward_pass=12"),
    *("session 3", "host: device", "node: add_3", "node=aten_add_tensor", "user_annotation", "user: 12%", "bos_token: <s>", "pad_token=[PAD]"),
    *("eos_token_id: 2", "next_token = argmax", "cls_token: Tensor", "DDP.forward (rank=3)", "dispatch_key=AutogradCUDA", "DispatchKey: CUDA"),
    *("private: 0", "address: 0x7f00", "node_count: 8", "NODE_RANK=0", "MASTER_PORT=29500", "KEY=128", "FlashAttnFunc(key=Tensor, value=Tensor)"),
    *("--key-size 64", "--num-tokens 4096", "--sort-key name", "M=128, N=256, K=64, key=fp16_row", "CUDA_VISIBLE_DEVICES=0,1", "host=True"),
    *("layer=encoder.3 token=CLS", "('key', 'value')", "sig=(int, int)", "uid=1234", "fn(user=True, secret=None)", "TOKENIZERS_PARALLELISM=false"),
    # What looks like a token, an address or a path.
    *("sk-learn", "sk-learn-pipeline-transformer", "npm_install_script_runner", "hf_modeling_attention_forward", "basic attention kernel"),
    *("12.4.1.105", "CUDA 12.4.1.105", "nvidia-curand-cu12==10.3.5.147", "TensorRT 10.3.0.26", "libcublas.so.12.4.5.8", "torch 2.4.1.1"),
    *("nvidia/cuda:12.4", "10:00:00", "2024-01-02 10:00:00.123", "0000:3b:00.0", "[1, 2, 3] x (4, 5)", "ratio 3:4:5", "127.0.0.1:8080"),
    *("GPU-3f1c5b1e-aaaa-bbbb-cccc-0123456789ab", "decode@4096", "int8@fp16", "actions/checkout@v4", "pytorch@sha256:abcdef", "matmul@bf16"),
    *("/encoder/layer.0/attention/self/key/MatMul", "layer.0.attention.self.key=3", "fwd/layer1/attn", "users/list/x", "12 tokens/s", "~Foo()"),
    *("torch/nn/modules/module.py(1553): _call_impl", "hash: d41d8cd98f00b204e9800998ecf8427e", "worker6_step_12", "s/key/value/"),
)  # fmt: skip
